"""A model that gives every item a score: the half of the evaluated-model protocol that all baselines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sadrec.data import Ids, Interactions, as_interactions
from sadrec.models.errors import NotFittedError

Array = NDArray[Any]
Rows = NDArray[np.int64]


class ScoreModel(ABC):
    """A baseline: ``fit``, ``scores`` and, as differences of scores, ``margins``.

    A subclass says how it learns (:meth:`_learn`) and how it scores a few users (:meth:`_block`).

    Parameters
    ----------
    name
        What the baseline is called in :data:`studies.baselines.BASELINES`.
    settings
        All its settings, resolved.
    """

    margins_are_differences = True
    """Lets an evaluation ask for the scores of many users at a time."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.settings: Mapping[str, Any] = MappingProxyType(dict(settings))
        self._users: Ids | None = None
        self._items: Ids | None = None

    @property
    @abstractmethod
    def trained_on(self) -> str:
        """What the baseline learns from, as a sentence for a table."""

    @abstractmethod
    def _learn(self, interactions: Interactions) -> None:
        """Learn from the interactions; their values do not matter, only that they are there."""

    @abstractmethod
    def _block(self, rows: Rows) -> Array:
        """Scores of all items (columns) for the users in ``rows``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings."""
        return dict(self.settings)

    def clone(self, **changes: Any) -> Self:
        """Make the same baseline, not fitted, with some settings changed.

        Examples
        --------
        >>> from studies.baselines import make
        >>> make("als").clone(factors=100).settings["factors"]
        100
        """
        return type(self)(**{**self.settings, **changes})

    def fit(self, interactions: Any, show_progress: bool = True) -> Self:
        """Learn from interactions, in any form that :func:`sadrec.data.as_interactions` takes; return the model."""
        data = as_interactions(interactions)
        self._learn(data)
        self._users = Ids(data.users, what="user")
        self._items = Ids(data.items, what="item")
        return self

    @property
    def users(self) -> Array:
        """Ids of the users, in row order."""
        return self._fitted(self._users).array

    @property
    def items(self) -> Array:
        """Ids of the items, in column order."""
        return self._fitted(self._items).array

    def scores(self, users: Any, /) -> Array:
        """Scores of all ``items`` (columns) for ``users`` (rows); higher is better."""
        rows = np.atleast_1d(self._fitted(self._users).positions(users))
        return self._block(rows)

    def margins(self, user: Any, items: Any, rivals: Any, /) -> Array:
        """Score of each of ``items`` (rows) minus that of each of ``rivals`` (columns), for one user."""
        ids = self._fitted(self._items)
        row = self._block(np.atleast_1d(self._fitted(self._users).positions(user)))[0]
        left, right = row[np.atleast_1d(ids.positions(items))], row[np.atleast_1d(ids.positions(rivals))]
        return np.asarray(left[:, None] - right[None, :])

    def _fitted(self, ids: Ids | None) -> Ids:
        if ids is None:
            raise NotFittedError(f"{self.name} has learnt nothing yet: call fit first")
        return ids

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({settings})"
