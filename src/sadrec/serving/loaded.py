"""A loaded model with titles and posterior, and the users and items of questions in it.

A reload makes a new object: no answer mixes two models.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import orjson
import scipy.sparse as sp
from starlette.responses import Response

from sadrec import SAD, Comparisons
from sadrec._core.files import checksum_of
from sadrec._core.types import Doubles, Positions
from sadrec.data import Ids, UnknownIdError, as_id_array
from sadrec.models import ModelFileError, known_features, with_rows
from sadrec.ranking import arena_report
from sadrec.serving import questions
from sadrec.serving.catalogue import Catalogue, catalogue
from sadrec.serving.problems import EmptyVisitorError, Unanswerable, UnknownUserError, answered
from sadrec.serving.settings import ServeSettings

Json = dict[str, Any]
"""A JSON object."""
EVERYBODY = "everybody"
"""The name of the average user."""
VISITOR = "visitor"
_ONE = Lock()
"""New items make a copy of the model for one question, one copy at a time."""


class Loaded:
    """A loaded model with everything that its answers need."""

    def __init__(
        self,
        model: SAD,
        digest: str,
        *,
        posterior: Any = None,
        items: Catalogue | None = None,
        log: bool = False,
    ) -> None:
        self.model, self.digest, self.posterior = model, digest, posterior
        self.items = items or catalogue(model.state.items)
        self.log = log
        self.header = (b"x-model", digest.encode())

    @classmethod
    def load(cls, settings: ServeSettings) -> "Loaded":
        """Load and verify a model with its tables; raise if a file is damaged or does not fit the others."""
        digest = checksum_of(Path(settings.model))
        model = SAD.load(settings.model, mmap=settings.mmap, verify=True)
        if checksum_of(Path(settings.model)) != digest:
            raise ModelFileError(f"{settings.model!r} was replaced while it was read: it is read again")
        for ids in (model.state.users, model.state.items):
            if not len(ids):
                raise ValueError(f"{settings.model!r} knows no {ids.what}s: there is nothing to serve")
        posterior = None
        if settings.posterior is not None:
            from sadrec.posterior import GibbsSAD

            posterior = GibbsSAD.load(settings.posterior)
            ours, theirs = model.state.items, posterior.state.items
            if len(ours) != len(theirs) or not ours.known(theirs.array).all():
                raise ValueError(f"{settings.posterior!r} knows other items than the model: fit both to the same data")
        items = catalogue(model.state.items, settings.items)
        log = settings.log is not None
        return cls(model, digest, posterior=posterior, items=items, log=log)

    # -- users and items of questions ---------------------------------------------------------------------------------

    def user_id(self, given: Any) -> Any:
        """Return a user's id as the model has it; the error for an unknown one names the remedy."""
        ids = self.model.state.users
        try:
            user = as_id(ids, given)
            ids.positions(user)
        except UnknownIdError as error:
            raise UnknownUserError(
                f"{error}; for somebody new, POST likes or comparisons, and /v1/recommend also takes fallback=popular"
            ) from None
        return user

    def unknown_user(self, given: Any) -> Any:
        """Return an unknown user's id as it was given: a URL holds text, also for a number."""
        ids = self.model.state.users
        if ids.array.dtype.kind not in "iuf":
            return given
        try:
            number = as_id(ids, given)
        except UnknownIdError:
            return given
        return number if math.isfinite(number) else given

    def item_ids(self, given: Sequence[Any]) -> list[Any]:
        """Return items' ids as the model has them; raise on unknown ones."""
        ids = self.model.state.items
        items = [as_id(ids, one) for one in given]
        if items:
            ids.positions(items)  # raises for an unknown one
        return items

    def distinct_item_ids(self, given: Sequence[Any]) -> list[Any]:
        """Return items' ids as the model has them; raise on unknown ones, and if one is given twice."""
        items = self.item_ids(given)
        if len(set(items)) < len(items):
            twice = next(one for one in items if items.count(one) > 1)
            raise Unanswerable(f"item {twice!r} is given twice: give each item once")
        return items

    def person(self, who: questions.Who) -> tuple[SAD, Any]:
        """Return the model that answers, and the person's id in it."""
        if who.user is not None:
            return self.model, self.user_id(who.user)
        for name, given in (("likes", who.likes), ("comparisons", who.comparisons), ("features", who.features)):
            if given is not None and not given:
                raise EmptyVisitorError(
                    f"{name} is empty. Leave it out to ask about the average user; "
                    "/v1/recommend also takes fallback=popular"
                )
        if who.likes is None and who.comparisons is None and who.features is None:
            return self.everybody, EVERYBODY
        # a value of another type than the feature's is a TypeError
        refusals = (ValueError,) if who.features is None else (ValueError, TypeError)
        return answered(lambda: self.visitor(who), refusals), VISITOR

    def visitor(self, who: questions.Who) -> SAD:
        """Return the visitor of a question as a model of one user."""
        likes = None if who.likes is None else self.item_ids(who.likes)
        comparisons = None if who.comparisons is None else self.comparisons(who.comparisons)
        return self.model.visitor(likes, comparisons, features=who.features, name=VISITOR)

    def comparisons(self, given: Sequence[questions.Comparison]) -> Comparisons:
        """Return a visitor's answers as comparisons."""
        ids = self.model.state.items
        winners, losers = (
            ids.positions([as_id(ids, getattr(one, side)) for one in given]) for side in ("winner", "loser")
        )
        if (same := winners == losers).any():
            item = self.items.ids[int(winners[same][0])]
            raise Unanswerable(f"item {item!r} is compared with itself: give two different items")
        # By rows of the items that occur, which are few.
        items, rows = np.unique(np.concatenate([winners, losers]), return_inverse=True)
        winner, loser = np.split(rows, 2)
        zeros = np.zeros(len(winner), np.int32)
        return Comparisons.from_indices(zeros, winner, loser, users=[VISITOR], items=ids.array[items])

    @contextmanager
    def joined(self, new: Sequence[questions.ItemWithFeatures]) -> Iterator["Loaded"]:
        """Yield the loaded model with new items, placed by their features; itself if there are none."""
        if not new:
            yield self
            return
        with _ONE:
            yield self._joined(new)

    def _joined(self, new: Sequence[questions.ItemWithFeatures]) -> "Loaded":
        model, items = self.model, self.model.state.items
        encoder = answered(lambda: known_features(model.state, "item")).encoder
        try:
            ids = Ids(as_id_array([as_id(items, one.item) for one in new]), "item")
        except UnknownIdError:
            raise Unanswerable(
                f"new_items: the ids of this model are such as {self.items.ids[0]!r}: give new ones like it"
            ) from None
        except ValueError as error:
            raise Unanswerable(f"new_items: {error}") from None
        rows = answered(
            lambda: sp.csr_matrix(sp.vstack([encoder.encode_one(one.features) for one in new])), (ValueError, TypeError)
        )
        larger = type(model)(**model.get_params())
        larger.state = answered(lambda: with_rows(model.state, "item", ids, rows))
        return Loaded(larger, self.digest, items=self.items.joined(catalogue(ids)), log=self.log)

    # -- ids as JSON holds them ---------------------------------------------------------------------------------------

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
        return [self.items.entries[place] for place in self._places(ids)]

    def shown(self, ids: Any) -> list[Any]:
        """Return items' ids as JSON holds them."""
        return [self.items.ids[place] for place in self._places(ids)]

    def scored(self, ids: Any, scores: Any) -> list[dict[str, Any]]:
        """Return items with their scores, which are written with the digits of their precision."""
        return [{**entry, "score": score} for entry, score in zip(self.entries(ids), scores, strict=True)]

    def _places(self, ids: Any) -> list[int]:
        return self.model.state.items.positions(ids).tolist() if len(ids) else []

    # -- what is computed once ----------------------------------------------------------------------------------------

    @cached_property
    def arena(self) -> dict[str, Any]:
        """The report for the page about an arena, for the average judge."""
        state = self.model.state
        titles = zip(self.items.titles, self.items.ids, strict=True)
        names = np.array([title or str(item) for title, item in titles], np.str_)
        return arena_report(state.belief, state.judges(None), names, 0.9, state.results)[1]

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
        return np.asarray(self.model.intransitivity(self.model.users))


def as_id(ids: Ids, given: Any) -> Any:
    """Convert an id to the type of the model's ids: numbers may come as text, and text as a number."""
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
        examples = f"the {len(ids)} known ones are such as {Loaded.plain(ids.array[0])!r}"
        raise UnknownIdError(f"unknown {ids.what} {str(given)[:60]!r}: {examples}") from None


def dumps(answer: Any) -> bytes:
    """Write an answer as JSON."""
    try:
        return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:  # a whole number beyond 64 bits, or text that is no Unicode
        return json.dumps(answer, default=Loaded.plain).encode("utf-8", "replace")


def refusal(loaded: Loaded | None, status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as an answer: one sentence, and the checksum of the model."""
    content = {"error": error, "model": None if loaded is None else loaded.digest}
    return Response(dumps(content), status, headers, "application/json")
