"""LensKit: SAD, BPR and GibbsSAD as a scorer, and a ranker that respects cycles."""

import json
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from sadrec.data import Interactions
from sadrec.integrations._common import CANDIDATES, checked, made, ordered, require

require("LensKit", "lenskit", "2025.8", "2027")

from lenskit.data import Dataset, ItemList, RecQuery  # noqa: E402
from lenskit.pipeline import Component, Pipeline, topn_pipeline  # noqa: E402
from lenskit.training import Trainable, TrainingOptions  # noqa: E402
from pydantic import BaseModel, Field  # noqa: E402

__all__ = ["SADConfig", "SADRanker", "SADRankerConfig", "SADScorer", "sad_pipeline"]

_FITS: "WeakKeyDictionary[Any, dict[str, Any]]" = WeakKeyDictionary()
"""Fits by data set, as long as that exists: a scorer and a ranker of the same settings share one fit."""


class SADConfig(BaseModel):
    """Which model of sadrec to train, by the name of its class ("SAD", "BPR", "GibbsSAD"), and its settings."""

    model: str = "SAD"
    settings: dict[str, Any] = Field(default_factory=dict)


class SADRankerConfig(SADConfig):
    """The configuration of :class:`SADRanker`; ``n`` is the length of lists, None for all items."""

    method: str = "wins"
    candidates: int = CANDIDATES
    n: int | None = None


class _Trained(Component, Trainable):  # type: ignore[misc]
    """A component that has a model of sadrec: one that it trains, or one that it was given."""

    config: SADConfig
    was_given = False

    @classmethod
    def of(cls, model: Any, **config: Any) -> Self:
        """Return a component of a fitted model, which ``train`` leaves as it is; ids are those of the data sets."""
        params = {name: value for name, value in model.get_params().items() if _plain(value)}
        component = cls(model=type(model).__name__, settings=params, **config)
        component.fitted, component.was_given = model, True
        return component

    def is_trained(self) -> bool:
        """Whether there is a fitted model."""
        return hasattr(self, "fitted")

    def train(self, data: Dataset, options: TrainingOptions | None = None) -> None:
        """Train the model on the interactions of a data set; a ``rating`` is taken along.

        The seed is the setting ``random_state``, 0 by default, so that a scorer and a ranker agree; the generator of
        the options is used only where ``random_state`` is None.
        """
        options = TrainingOptions() if options is None else options
        if self.was_given or (self.is_trained() and not options.retrain):
            return
        settings = dict(self.config.settings)
        if "random_state" in settings and settings["random_state"] is None:
            settings["random_state"] = int(options.random_generator().integers(2**63))
        key = json.dumps([self.config.model, settings], sort_keys=True)
        fits = _FITS.setdefault(data, {})
        if key not in fits:
            fits[key] = made(self.config.model, settings).fit(interactions(data), show_progress=False)
        self.fitted = fits[key]

    def _model_and_user(self, query: RecQuery) -> tuple[Any, Any]:
        """Return the model with a vector of the query's user, and the user's id; None if there is no such vector."""
        model = self.fitted
        if query.user_id is not None and model.state.users.rows([query.user_id])[0] >= 0:
            return model, query.user_id
        history = query.query_items
        if history is None or not len(history):
            return None, None
        liked = model.state.items.rows(history.ids())
        if not (liked >= 0).any():
            return None, None
        return model.visitor(model.items[liked[liked >= 0]]), "visitor"


class SADScorer(_Trained):
    """Scores items by their mean margin over the catalogue.

    A user who was not trained on is folded in from the items of the query; without any, and for items that were not
    trained on, the score is NaN, which LensKit's rankers leave out. :meth:`of` takes a model that is fitted.

    Examples
    --------
    >>> scorer = SADScorer(model="SAD", settings={"factors": 8, "iterations": 5})
    """

    config: SADConfig

    def __call__(self, query: RecQuery, items: ItemList) -> ItemList:
        """Return the items with scores."""
        query = RecQuery.create(query)
        model, user = self._model_and_user(query)
        scores = np.full(len(items), np.nan, np.float32)
        if model is not None:
            columns = model.state.items.rows(items.ids())
            scores[columns >= 0] = model.scores([user])[0][columns[columns >= 0]]
        return ItemList(items, scores=scores)


class SADRanker(_Trained):
    """Orders scored items, from whatever scorer, by who beats whom among the best of them.

    The ``candidates`` items with the best scores play each other, by "wins", "nash", "markov" or (the order of the
    scores) "margin"; those behind keep the order of their scores. Scores and other fields stay; items without a score
    are left out. Users and items that the model does not know stay in the order of the scores.

    It takes the query as well as ``items`` and ``n``, to know the user: :func:`sad_pipeline` connects it.
    """

    config: SADRankerConfig

    def __init__(self, config: Any = None, **settings: Any) -> None:
        super().__init__(config, **settings)
        checked(self.config.method, self.config.candidates)

    def __call__(self, items: ItemList, query: RecQuery, n: int | None = None) -> ItemList:
        """Return the items in order, ``n`` at most."""
        method, candidates = checked(self.config.method, self.config.candidates)
        best = items.top_n()
        length = n if n is not None else self.config.n
        model, user = (None, None) if method == "margin" else self._model_and_user(RecQuery.create(query))
        if model is not None and len(best):
            playing = model.state.items.rows(best[np.arange(min(candidates, len(best)))].ids())
            present = np.flatnonzero(playing >= 0)
            now = ordered(model, user, playing[present], method, len(present))
            place_of = dict(zip(playing[present].tolist(), present.tolist(), strict=True))
            order = np.arange(len(best))
            order[present] = [place_of[item] for item in now.tolist()]
            best = ItemList(best[order], ordered=True, rank=np.arange(1, len(best) + 1))  # not the ranks of before
        return best if length is None or length < 0 else best[np.arange(min(length, len(best)))]


def interactions(data: Dataset) -> Interactions:
    """Return the interactions of a LensKit data set, with its ids, and with ratings if it has some."""
    matrix = data.interactions().matrix()
    values = matrix.scipy("rating" if "rating" in matrix.attribute_names else None)
    return Interactions.from_csr(values, data.users.ids(), data.items.ids())


def sad_pipeline(
    model: Any = "SAD",
    settings: dict[str, Any] | None = None,
    *,
    method: str = "wins",
    candidates: int = CANDIDATES,
    n: int | None = None,
    name: str | None = None,
) -> Pipeline:
    """Return a pipeline that scores by mean margin and orders the best by a method: scorer and ranker share one fit.

    Parameters
    ----------
    model, settings
        "SAD", "BPR" or "GibbsSAD" and its settings, or a fitted model.
    method, candidates, n
        Of :class:`SADRanker`.
    name
        The name of the pipeline.
    """
    own: dict[str, Any] = {"method": method, "candidates": candidates, "n": n}
    if isinstance(model, str):
        chosen = {"model": model, "settings": settings or {}}
        scorer, ranker = SADScorer(**chosen), SADRanker(**chosen, **own)
    elif settings:
        raise ValueError("settings are for a model that is to be trained: give its name, such as 'SAD', with them")
    else:
        scorer, ranker = SADScorer.of(model), SADRanker.of(model, **own)
    builder = topn_pipeline(scorer, name=name).modify()
    inputs = {"items": "scorer", "n": "n", "query": "history-lookup"}
    builder.replace_component("ranker", ranker, **{name: builder.node(node) for name, node in inputs.items()})
    return builder.build()


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
