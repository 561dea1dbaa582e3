"""RecTools: SAD, BPR and GibbsSAD as a model, and a reranker of anybody's candidates that respects cycles."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.types import SlateMethod
from sadrec.data import Interactions
from sadrec.integrations._common import CANDIDATES, checked, made, ordered, require
from sadrec.models import SAD

require("RecTools", "rectools", "0.19", "0.20")

from pydantic import Field  # noqa: E402
from rectools import Columns  # noqa: E402
from rectools.models.base import ModelConfig  # noqa: E402
from rectools.models.rank import Distance  # noqa: E402
from rectools.models.ranking import Reranker  # noqa: E402
from rectools.models.vector import Factors, VectorModel  # noqa: E402

__all__ = ["SADModel", "SADModelConfig", "SADReranker"]

Triplet = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


class SADModelConfig(ModelConfig):  # type: ignore[misc]
    """The configuration of :class:`SADModel`: a model by the name of its class ("SAD", "BPR", "GibbsSAD"), settings."""

    model: str = "SAD"
    settings: dict[str, Any] = Field(default_factory=dict)
    method: str = "margin"
    candidates: int = CANDIDATES
    recommend_n_threads: int = 0
    recommend_use_gpu_ranking: bool = False


class SADModel(VectorModel):  # type: ignore[misc]
    """A model of sadrec for RecTools.

    ``recommend`` gives what ``recommend`` of the model gives: its own lists and scores. ``recommend_to_items`` compares
    the item vectors by their cosine. Like RecTools' other models of this kind it recommends to users with interactions
    only; what happens to others, ``on_unsupported_targets`` says.

    Parameters
    ----------
    model
        A SAD, BPR or GibbsSAD with its settings; None: ``SAD()``. One that is fitted can be asked at once. ``fit``
        trains a copy, which is the attribute ``fitted``; weights of interactions count as ratings.
    method, candidates
        "margin": lists by mean margin over the catalogue. "wins", "markov", "nash": the best ``candidates`` of them
        play each other; the scores are those of the method.
    recommend_n_threads, recommend_use_gpu_ranking
        Of RecTools' ranking, for ``recommend_to_items``; the threads of ``recommend`` are the model's.
    verbose
        Above 0 a progress bar is shown.
    """

    recommends_for_warm = False
    recommends_for_cold = False
    u2i_dist = Distance.DOT
    i2i_dist = Distance.COSINE
    config_class = SADModelConfig
    fitted: Any

    def __init__(
        self,
        model: Any = None,
        method: SlateMethod = "margin",
        candidates: int = CANDIDATES,
        recommend_n_threads: int = 0,
        recommend_use_gpu_ranking: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose=verbose)
        self.model: Any = SAD() if model is None else model
        self.method, self.candidates = checked(method, candidates)
        self.recommend_n_threads, self.recommend_use_gpu_ranking = recommend_n_threads, recommend_use_gpu_ranking
        if self.model.is_fitted:
            self.fitted, self.is_fitted = self.model, True

    def _get_config(self) -> SADModelConfig:
        return SADModelConfig(
            cls=type(self),
            model=type(self.model).__name__,
            settings=self.model.get_params(),
            method=self.method,
            candidates=self.candidates,
            recommend_n_threads=self.recommend_n_threads,
            recommend_use_gpu_ranking=self.recommend_use_gpu_ranking,
            verbose=self.verbose,
        )

    @classmethod
    def _from_config(cls, config: SADModelConfig) -> Self:
        given = {name: getattr(config, name) for name in SADModelConfig.model_fields if name not in ("cls", "settings")}
        return cls(**{**given, "model": made(config.model, config.settings)})

    def _fit(self, dataset: Any) -> None:
        matrix = dataset.get_user_item_matrix(include_weights=True)
        users, items = (ids.external_ids for ids in (dataset.user_id_map, dataset.item_id_map))
        data = Interactions.from_csr(matrix, users[: matrix.shape[0]], items[: matrix.shape[1]])
        self.fitted = self.model.clone().fit(data, show_progress=self.verbose > 0)

    def _recommend_u2i(
        self, user_ids: Any, dataset: Any, k: int, filter_viewed: bool, sorted_item_ids_to_recommend: Any
    ) -> Triplet:
        model, users = self.fitted, dataset.user_id_map.convert_to_external(user_ids)
        columns = model.state.items.rows(dataset.item_id_map.external_ids)  # the model's, by internal id
        wanted = np.arange(len(columns)) if sorted_item_ids_to_recommend is None else sorted_item_ids_to_recommend
        allowed = columns[wanted][columns[wanted] >= 0]
        if not len(allowed):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        all_of_it = len(allowed) == len(model.items)
        seen = dataset.get_user_item_matrix(include_weights=False)[user_ids].tocoo()
        present = columns[seen.col] >= 0
        shape = len(user_ids), len(model.items)
        viewed = sp.csr_matrix(
            (np.ones(present.sum(), np.float32), (seen.row[present], columns[seen.col[present]])), shape
        )
        length = min(k if self.method == "margin" else max(k, self.candidates), len(model.items))
        items, scores = model.recommend(
            users,
            viewed,
            N=length,
            filter_already_liked_items=filter_viewed,
            items=None if all_of_it else model.items[allowed],
        )
        if self.method != "margin":
            items, scores = self._played(users, items, scores)
        items, scores = items[:, :k], scores[:, :k]
        real = scores > -np.inf
        internal = dataset.item_id_map.convert_to_internal(items[real])
        return np.repeat(np.asarray(user_ids), real.sum(axis=1)), internal, scores[real]

    def _played(self, users: Any, items: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return lists in the order of the method, with its scores."""
        items, scores = items.copy(), np.asarray(scores, np.float64)
        for row, user in enumerate(users):
            length = int((scores[row] > -np.inf).sum())
            ranking = self.fitted.rank(user, items[row, :length], self.method)
            items[row, :length], scores[row, :length] = ranking.items, ranking.scores
        return items, scores

    def _get_users_factors(self, dataset: Any) -> Factors:
        model = self.fitted
        return Factors(_rows(model.user_vectors(), model.state.users.rows(dataset.user_id_map.external_ids)))

    def _get_items_factors(self, dataset: Any) -> Factors:
        model = self.fitted
        return Factors(_rows(model.item_vectors(), model.state.items.rows(dataset.item_id_map.external_ids)))


class SADReranker(Reranker):  # type: ignore[misc]
    """Reorders candidates, from whatever model, by who beats whom: for ``CandidateRankingModel``, or any list.

    The score of a candidate is how many of the user's candidates come after it; candidates that the model does not
    know come last, in the order they were given in. ``fit`` does nothing: the model has learnt from the interactions.

    Parameters
    ----------
    model
        A fitted SAD, BPR or GibbsSAD, or a :class:`SADModel`, which may be fitted later.
    method
        "wins", "nash", "markov", or "margin": see ``SAD.rank``. A user has at most 2,000 candidates for "nash" and
        "markov".
    """

    def __init__(self, model: Any, method: SlateMethod = "wins") -> None:
        super().__init__(model)
        self.method, _ = checked(method, 1)

    def fit(self, candidates_with_target: Any) -> None:
        """Do nothing."""

    def predict_scores(self, candidates: Any) -> NDArray[Any]:
        """Return how many of the user's candidates come after each."""
        model = self.model.fitted if isinstance(self.model, SADModel) else self.model
        scores = np.empty(len(candidates))
        items = model.state.items.rows(candidates[Columns.Item].to_numpy())
        for user, rows in candidates.groupby(Columns.User, sort=False).indices.items():
            present = rows[items[rows] >= 0] if model.state.users.rows([user])[0] >= 0 else rows[:0]
            order = ordered(model, user, items[present], self.method, len(present))
            if self.method == "margin" and len(present):
                order = model.state.items.positions(model.rank(user, model.items[items[present]]).items)
            row_of = dict(zip(items[present].tolist(), present.tolist(), strict=True))
            first = [row_of[item] for item in order.tolist()]
            listed = np.concatenate([np.array(first, np.int64), rows[~np.isin(rows, present)]])
            scores[listed] = np.arange(len(listed))[::-1]
        return scores


def _rows(vectors: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return some rows, and zeros where there is none."""
    return np.where((rows >= 0)[:, None], vectors[rows], np.float32(0))
