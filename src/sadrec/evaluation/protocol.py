"""What a model must offer to be evaluated, and to be fitted here; margins are made of scores, and scores of margins.

A fitted model is evaluated through ``margins(user, items, rivals)`` (an array items x rivals; above 0 the item is
preferred) and ``scores(users)`` (an array users x ``model.items``; higher is better). One of the two is enough: margins
are then differences of scores, or scores are mean margins over the catalogue. Measures of probability apply only to a
model that has ``probability(user, item, rival)``. A model that has both and whose margins are nothing but differences
of its scores may say so with an attribute ``margins_are_differences = True``: it is then asked for the scores of many
users at a time, which is faster.

``compare`` and ``tune`` also copy and fit models. Every :class:`~sadrec.models.base.Estimator` can be; a model of your
own needs ``get_params()`` (scikit-learn's convention: the arguments of its constructor) and
``fit(data, show_progress=...)``.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sadrec._files import plain
from sadrec.data.ids import Ids

Array = NDArray[Any]
# The numbers in one block of margins (items x rivals).
_BLOCK = 1 << 22


class HasIds(Protocol):
    """Data, or a model, of users and items."""

    @property
    def users(self) -> Array:
        """Ids of the users, in row order."""

    @property
    def items(self) -> Array:
        """Ids of the items, in column order."""


@runtime_checkable
class HasMargins(HasIds, Protocol):
    """A model that compares items pair by pair."""

    def margins(self, user: Any, items: Any, rivals: Any, /) -> Array:
        """Margins x of ``items`` (rows) over ``rivals`` (columns) for one user."""


@runtime_checkable
class HasScores(HasIds, Protocol):
    """A model that gives every item a score."""

    def scores(self, users: Any, /) -> Array:
        """Scores of all ``items`` (columns) for ``users`` (rows)."""


@runtime_checkable
class EvaluatedModel(HasMargins, HasScores, Protocol):
    """A model that has both: what every function of this folder takes."""


@runtime_checkable
class HasProbability(Protocol):
    """A model that says how sure it is: ``probability`` broadcasts over ``item`` and ``rival``."""

    def probability(self, user: Any, item: Any, rival: Any, /) -> Any:
        """Probability that ``user`` prefers ``item`` to ``rival``."""


class _WithMargins:
    """A scores-only model that answers ``margins`` with differences of its scores."""

    def __init__(self, model: HasScores) -> None:
        self.users, self.items, self.scores = model.users, model.items, model.scores
        self._ids = Ids(model.items)

    def margins(self, user: Any, items: Any, rivals: Any, /) -> Array:
        """Differences of scores, items x rivals."""
        row = np.asarray(self.scores(np.asarray([user])))[0]
        left, right = (row[np.atleast_1d(self._ids.positions(ids))] for ids in (items, rivals))
        return np.asarray(left[:, None] - right[None, :])


class _WithScores:
    """A margins-only model that answers ``scores`` with mean margins over its catalogue.

    The item itself counts as a rival with margin 0, so the mean is over all items: ``s_i = mean_j x_uij``.
    """

    def __init__(self, model: HasMargins) -> None:
        self.users, self.items, self.margins = model.users, model.items, model.margins

    def scores(self, users: Sequence[Any] | Array, /) -> Array:
        """Mean margins over the catalogue, users x items, computed a block of items at a time."""
        step = max(1, _BLOCK // max(1, len(self.items)))
        out = np.empty((len(users), len(self.items)))
        for row, user in enumerate(users):
            for start in range(0, len(self.items), step):
                block = self.margins(user, self.items[start : start + step], self.items)
                out[row, start : start + step] = np.asarray(block).mean(axis=1)
        return out


def as_evaluated(model: Any) -> EvaluatedModel:
    """Give ``model`` whichever of ``margins`` and ``scores`` it lacks.

    Examples
    --------
    >>> class Popularity:
    ...     users, items = np.array([7]), np.array(["a", "b", "c"])
    ...     def scores(self, users):
    ...         return np.tile([3.0, 1.0, 2.0], (len(users), 1))
    >>> as_evaluated(Popularity()).margins(7, ["a", "b"], ["c"])
    array([[ 1.],
           [-1.]])

    Raises
    ------
    TypeError
        When it has neither, or no ``users`` and ``items``.
    """
    if isinstance(model, EvaluatedModel):
        return model
    if isinstance(model, HasScores):
        return _WithMargins(model)
    if isinstance(model, HasMargins):
        return _WithScores(model)
    if hasattr(type(model), "users"):
        _ = model.users  # a model that is not fitted says so itself
    raise TypeError(
        f"cannot evaluate {type(model).__name__}: it must have the id arrays 'users' and 'items' and at least one "
        "of margins(user, items, rivals) and scores(users)"
    )


def copied(model: Any, **settings: Any) -> Any:
    """Return a model that is not fitted, with the settings of ``model`` but for those given here.

    Raises
    ------
    TypeError
        When ``model`` is a class, or has no ``fit`` or no ``get_params``.
    ValueError
        When it has no such setting.
    """
    if isinstance(model, type):
        raise TypeError(f"give a model, {model.__name__}(...), not its class")
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise TypeError(
            f"cannot copy and fit {type(model).__name__}: a model needs fit(data, show_progress=...) and get_params(), "
            "which returns the arguments of its constructor"
        )
    known = model.get_params()
    for name in settings:
        if name not in known:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(known)}")
    return model.clone(**settings) if hasattr(model, "clone") else type(model)(**{**known, **settings})


def about(model: Any) -> dict[str, Any]:
    """Return class and settings of a model in plain values, as they stand in a results file."""
    kind = type(model)
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "settings": plain(model.get_params())}
