"""The state of a fitted model: frozen data, replaced as a whole, so that no answer mixes two fits."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._core.sparse import drop_disliked
from sadrec._core.types import Positions
from sadrec.data.ids import Ids
from sadrec.features.predictor import ModelFeatures
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Belief
from sadrec.ranking.results import Results
from sadrec.ranking.top_n import ItemIndex
from sadrec.ranking.visitors import Visitors
from sadrec.training.loop import Figures
from sadrec.training.settings import Settings

NOTHING = np.empty(0, np.int32)
"""The items of a user who has seen none."""


@dataclass(frozen=True, eq=False)
class State:
    """The state of a fitted model.

    Attributes
    ----------
    belief
        Of every margin: a point, a Gaussian, or draws.
    users, items
        Their ids, in row order.
    stored_seen
        What was seen in training, CSR (users x items), a function that reads it, or None: see :attr:`seen`.
    settings
        Those that the fit used, with everything resolved; None for given parameters.
    history
        The figures of every epoch of the fit.
    features
        What features of users and items predict; None for a fit without features.
    file
        The file that the model was read from, and its checksum.
    results
        How the comparisons ended that the model learnt from, counted; None where it learnt from none.
    """

    belief: Belief
    users: Ids
    items: Ids
    stored_seen: Any = None
    settings: Any = None
    history: list[Figures] = field(default_factory=list)
    features: ModelFeatures | None = None
    file: tuple[Path, str] | None = None
    results: Results | None = None

    @property
    def parameters(self) -> Parameters:
        """Factors and bias: the means of the belief."""
        return self.belief.parameters

    @cached_property
    def seen(self) -> Any:
        """Items seen in training, CSR (users x items), or None; below 0 where disliked."""
        return self.stored_seen() if callable(self.stored_seen) else self.stored_seen

    @cached_property
    def liked(self) -> Any:
        """Seen items that were not disliked, CSR, or None."""
        return drop_disliked(self.seen)

    def judges(self, ids: Any) -> Positions | None:
        """Return the rows of users whose margins are averaged; None is the only user, or the average of all."""
        if ids is None:
            return np.zeros(1, np.int64) if len(self.users) == 1 else None
        rows = np.unique(np.atleast_1d(self.users.positions(ids)))
        if not len(rows):
            raise ValueError("judges holds no id: give one or more, or None for the average of all")
        return rows

    def one(self, user: Any) -> tuple[Belief, int]:
        """Return the belief that answers for one user, and the user's row in it; None is the only or average user."""
        if user is not None:
            return self.belief, self.users.one(user)
        return (self.belief if len(self.users) == 1 else self.belief.average), 0

    def triple(self, user: Any, item: Any, rival: Any) -> tuple[Any, Any, Any, Any]:
        """Return the belief that answers for users, and the rows of users, items and rivals, of any shape."""
        belief, users = self.one(None) if user is None else (self.belief, self.users.positions(user))
        return belief, users, self.items.positions(item), self.items.positions(rival)

    def liked_by(self, user: int | None) -> Positions:
        """Return the items that a user was seen with and did not dislike; none for the average user."""
        if self.seen is None or user is None:
            return np.empty(0, np.int64)
        return np.asarray(drop_disliked(self.seen[[user]]).indices)

    def seen_by(self, user: int) -> Any:
        """Return the items that a user was seen with, in order."""
        start, items = self._seen_rows
        return items[start[user] : start[user + 1]] if start.size else NOTHING

    @cached_property
    def _seen_rows(self) -> tuple[Positions, Any]:
        """The row starts and sorted items of :attr:`seen`; empty without it."""
        if self.seen is None:
            return np.empty(0, np.int64), NOTHING
        seen = self.seen if self.seen.has_sorted_indices else self.seen.sorted_indices()
        return seen.indptr.astype(np.int64, copy=False), seen.indices.astype(np.int32, copy=False)

    @cached_property
    def index(self) -> ItemIndex:
        """The items, packed for search."""
        return ItemIndex(self.belief.item_vectors)

    @cached_property
    def visitors(self) -> Visitors:
        """The solver for the vectors of visitors, with the penalties of the fit."""
        settings = self.settings
        if not isinstance(settings, Settings):
            return Visitors(self.belief)
        # Vectors of a fixed length had no penalty: with this one, those of visitors come out about as long.
        penalty = 0.2 / settings.length**4 if settings.length else settings.regularization
        balance, power = (0.0, 0, 0.0), settings.user_balance
        if power and self.seen is not None:
            counts = np.diff(self.liked.indptr)
            balance = power, int(counts.sum()), float(counts @ np.maximum(counts, 1.0) ** -power)
        return Visitors(self.belief, max(penalty, 1e-6), balance)
