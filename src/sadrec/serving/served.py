"""One model ready to answer, with titles, posterior and twin. A reload makes a new one: no answer mixes two."""

import json
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sadrec import BPR, SAD, Comparisons
from sadrec._files import checksum_of
from sadrec._types import Doubles, Positions
from sadrec.data.ids import Ids, UnknownIdError
from sadrec.models.base import ModelFileError
from sadrec.ranking.intransitivity import intransitivity
from sadrec.ranking.leaderboard import leaderboard
from sadrec.ranking.report import arena_report
from sadrec.ranking.vectors import nearest_bpr as nearest_scores
from sadrec.serving.catalogue import Catalogue, catalogue
from sadrec.serving.settings import ServeSettings

EVERYBODY = "everybody"
"""What the average user is called."""
VISITOR = "visitor"


class Served:
    """A model and all that its answers need."""

    def __init__(
        self,
        model: SAD,
        digest: str,
        *,
        posterior: Any = None,
        items: Catalogue | None = None,
        twin: SAD | None = None,
        test: Comparisons | None = None,
        log: bool = False,
    ) -> None:
        self.model, self.digest, self.posterior, self.given_twin, self.test = model, digest, posterior, twin, test
        self.items = items or catalogue(model.state.items)
        self.log = log
        self.header = (b"x-model", digest.encode())

    @classmethod
    def load(cls, settings: ServeSettings) -> "Served":
        """Load a model and what goes with it, verified; raise where a file is damaged or does not fit the others."""
        digest = checksum_of(Path(settings.model))
        model = SAD.load(settings.model, mmap=settings.mmap, verify=True)
        if checksum_of(Path(settings.model)) != digest:
            raise ModelFileError(f"{settings.model!r} was replaced while it was read: it is read again")
        for ids in (model.state.users, model.state.items):
            if not len(ids):
                raise ValueError(f"{settings.model!r} knows no {ids.what}s: there is nothing to serve")
        posterior = twin = test = None
        if settings.posterior is not None:
            from sadrec.posterior import GibbsSAD

            posterior = GibbsSAD.load(settings.posterior)
            _check_same(model.state.items, posterior.state.items, settings.posterior)
        if settings.twin is not None:
            twin = SAD.load(settings.twin)
            if twin.state.parameters.rival_factors is not None:
                raise ValueError(f"{settings.twin!r} is no twin: its T is not 1 (fit it with --model bpr)")
            _check_same(model.state.items, twin.state.items, settings.twin)
            _check_same(model.state.users, twin.state.users, settings.twin)
        if settings.test is not None:
            test = Comparisons.read(settings.test)
            if not any(len(side) for side in known_part(model, test)):
                raise ValueError(
                    f"{settings.test!r}: none of its comparisons is between items, and of a user, that the model knows"
                )
        items = catalogue(model.state.items, settings.items)
        log = settings.log is not None
        return cls(model, digest, posterior=posterior, items=items, twin=twin, test=test, log=log)

    # -- ids ----------------------------------------------------------------------------------------------------------

    def user_id(self, given: Any) -> Any:
        """Return a user's id as the model has it."""
        return as_id(self.model.state.users, given)

    def item_id(self, given: Any) -> Any:
        """Return an item's id as the model has it."""
        return as_id(self.model.state.items, given)

    def item_ids(self, given: Sequence[Any]) -> list[Any]:
        """Return items' ids as the model has them."""
        return [self.item_id(one) for one in given]

    @staticmethod
    def plain(value: Any) -> Any:
        """Return an id, or an array of them, as JSON holds it."""
        if isinstance(value, np.ndarray | np.generic):
            return value.astype(str).tolist() if value.dtype.kind == "M" else value.tolist()
        return value

    def entry(self, item: Any) -> dict[str, Any]:
        """Return an item as answers hold it."""
        return self.items.entries[int(self.model.state.items.positions(item))]

    def entries(self, ids: Any) -> list[dict[str, Any]]:
        """Return items as answers hold them."""
        return (
            [self.items.entries[place] for place in self.model.state.items.positions(ids).tolist()] if len(ids) else []
        )

    # -- what is computed once ----------------------------------------------------------------------------------------

    @cached_property
    def arena(self) -> dict[str, Any]:
        """What the page about an arena shows, for the average judge."""
        state = self.model.state
        judges, every = state.judges(None), np.arange(len(state.items))
        table = leaderboard(state.belief, judges, every, every, results=state.results)
        titles = zip(self.items.titles, self.items.ids, strict=True)
        names = np.array([title or str(item) for title, item in titles], np.str_)
        return arena_report(state.belief, judges, names, table, 0.9, state.results)

    @cached_property
    def everybody(self) -> SAD:
        """A model of the average user."""
        return self.model.visitor(name=EVERYBODY)

    @cached_property
    def popularity(self) -> Doubles:
        """The mean margin of every item over the catalogue, for the average user."""
        return np.asarray(self.model.state.belief.average.scores([0])[0], np.float64)

    @cached_property
    def by_popularity(self) -> Positions:
        """All items, the most popular first."""
        return np.argsort(-self.popularity, kind="stable")

    @cached_property
    def popular_place(self) -> Positions:
        """The place of every item among the popular ones, from 1."""
        places = np.empty(len(self.by_popularity), np.int64)
        places[self.by_popularity] = np.arange(1, len(places) + 1)
        return places

    @cached_property
    def intransitivity(self) -> Doubles:
        """The share of each user's preferences that no scores explain."""
        return np.asarray(intransitivity(self.model.state.parameters))

    @cached_property
    def twin(self) -> SAD:
        """A model with T = 1: the one that was given, or the nearest."""
        return nearest_bpr(self.model) if self.given_twin is None else self.given_twin

    @cached_property
    def tested(self) -> dict[str, Any] | None:
        """How well model and twin predict comparisons that neither has learnt from; None where none are given."""
        if self.test is None:
            return None
        asked = known_part(self.model, self.test.decided)
        user, winner, loser = asked
        ours, theirs = (np.clip(one.probability(user, winner, loser), 1e-12, 1.0) for one in (self.model, self.twin))
        gain = np.log(ours) - np.log(theirs)
        return {
            "comparisons": len(asked[0]),
            "log_loss": float(-np.log(ours).mean()),
            "twin_log_loss": float(-np.log(theirs).mean()),
            "difference": float(gain.mean()),
            "error": float(gain.std(ddof=1) / math.sqrt(len(gain))) if len(gain) > 1 else 0.0,
            "accuracy": float((ours > 0.5).mean()),
            "twin_accuracy": float((theirs > 0.5).mean()),
        }


def nearest_bpr(model: SAD) -> BPR:
    """Return the BPR model (T = 1) whose margins are nearest to a model's: the part that scores explain."""
    scores, state = nearest_scores(model.state.parameters), model.state
    factors = scores.user_factors, scores.item_factors, None, scores.item_bias
    return BPR.from_factors(*factors, state.users.array, state.items.array, state.seen)


def known_part(model: SAD, test: Comparisons) -> list[NDArray[Any]]:
    """Return users, winners and losers of the comparisons that a model knows all ids of."""
    sides = (test.users, test.user_index), (test.items, test.winner_index), (test.items, test.loser_index)
    triples = [ids[rows] for ids, rows in sides]
    try:
        known = model.state.users.known(triples[0])
        for side in triples[1:]:
            known &= model.state.items.known(side)
    except UnknownIdError:  # numbers here and text there
        known = np.zeros(len(test), np.bool_)
    return [side[known] for side in triples]


def as_id(ids: Ids, given: Any) -> Any:
    """Return an id as a model has it: numbers may come as text, and text that looks like a number as a number."""
    kind = ids.array.dtype.kind
    try:
        if kind in "iu":
            if isinstance(given, str) and "_" in given:  # Python takes 1_0 for 10
                raise ValueError
            value = int(given)
            if isinstance(given, float) and value != given:
                raise ValueError
            if not -(2**63) <= value < 2**64:
                raise ValueError
            return value
        if kind == "f":
            return float(given)
        if kind == "M":
            return np.datetime64(str(given))
        return str(given)
    except (ValueError, TypeError, OverflowError):
        known = f"the {len(ids)} known ones are such as {Served.plain(ids.array[0])!r}"
        raise UnknownIdError(f"unknown {ids.what} {str(given)[:60]!r}: {known}") from None


def _check_same(ours: Ids, theirs: Ids, path: str) -> None:
    if len(ours) != len(theirs) or not ours.known(theirs.array).all():
        raise ValueError(f"{path!r} knows other {ours.what}s than the model: fit both to the same data")


def dumps(answer: Any) -> bytes:
    """Write an answer as JSON."""
    try:
        return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:  # a whole number beyond 64 bits, or text that is no Unicode
        return json.dumps(answer, default=Served.plain).encode("utf-8", "replace")
