"""The protocols of models to evaluate, and their margins in rows and columns of the data.

A fitted model is evaluated through ``margins(user, items, rivals)`` (an array items x rivals; above 0 the item is
preferred) and ``scores(users)`` (an array users x ``model.items``; higher is better). One of the two is enough: margins
are then differences of scores, or scores are mean margins over the catalogue. Measures of probability apply only to a
model that has ``probability(user, item, rival)``. A model whose margins are nothing but differences of its scores has
``scores`` alone: it is then asked for many users at a time. A model that keeps what it was trained on as ``seen``, a
matrix users x items, is not evaluated on it.

``compare`` and ``tune`` also copy and fit models. Every :class:`~sadrec.models.base.Estimator` can be; a model of your
own needs ``get_params()`` (scikit-learn's convention: the arguments of its constructor) and
``fit(data, show_progress=...)``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sadrec._core.files import plain
from sadrec._core.settings import opened
from sadrec.data import Ids
from sadrec.ranking import Parameters, sigmoid

Array = NDArray[Any]
# (position in the block, columns of items, columns of rivals) -> margins, items x rivals
MarginsOf = Callable[[int, Array, Array], Array]
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
    """A model with scores and margins: every function of this folder takes it."""


@runtime_checkable
class HasProbability(Protocol):
    """A model with probabilities: ``probability`` broadcasts over ``item`` and ``rival``."""

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
    """A margins-only model that answers ``scores`` with mean margins over its catalogue, the item itself included."""

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
    """Return the model with both ``margins`` and ``scores``, the missing one derived from the other.

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


@dataclass(frozen=True)
class Source:
    """Margins of one model, by rows and columns of the data.

    ``block(rows)`` prepares the margins of some users; ``probability(row, items, rivals, margins)`` gives the
    probabilities of the same comparisons as ``margins``, or None when the model offers none.
    """

    block: Callable[[Array], MarginsOf]
    probability: Callable[[int, Array, Array, Array], Array | None]
    concurrent: bool = False
    """Whether blocks may be worked on by several threads."""


def source_of(model: object, data: HasIds) -> Source:
    """Return the fastest source of the model's margins for the users and items of ``data``.

    They come from the factors of a model whose belief is a point, or else from the verbs of the protocol, which is
    slower and gives the same numbers.
    """
    given = as_evaluated(model)
    users, items = positions(given, data)
    belief = getattr(getattr(model, "state", None), "belief", None)
    probable = model if isinstance(model, HasProbability) else None

    def by_model(row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        if probable is None:
            return None
        sides = data.items[items][:, None], data.items[rivals][None, :]
        return np.asarray(probable.probability(data.users[row], *sides), dtype=np.float64)

    def logistic(row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        return None if probable is None else sigmoid(margins)

    if belief is not None and not belief.has_variance and not belief.has_pairs:
        return Source(_by_factors(belief.parameters, users, items), logistic, concurrent=True)
    if isinstance(model, HasMargins):
        return Source(_by_margins(model, data), by_model)
    scored = model if isinstance(model, HasScores) else given
    return Source(lambda rows: _differences(scores_of(scored, data.users[rows], items)), by_model)


def _by_factors(parameters: Parameters, users: Array, items: Array) -> Callable[[Array], MarginsOf]:
    """Return margins by one matrix product per user, or differences of scores when T is all ones."""
    xi = parameters.extend_users(np.asarray(parameters.user_factors)[users])
    eta, tau = parameters.extend_items(items)
    if parameters.rival_factors is None:
        return lambda rows: _differences(xi[rows] @ eta.T)
    # x_uij = [xi*eta_i, xi*tau_i] . [tau_j, -eta_j]: a row of each per item, side by side.
    left, right = np.hstack([eta, tau]), np.hstack([tau, -eta])

    def block(rows: Array) -> MarginsOf:
        doubled = np.hstack([xi[rows], xi[rows]])
        return lambda position, items, rivals: np.asarray((left[items] * doubled[position]) @ right[rivals].T)

    return block


def _by_margins(model: HasMargins, data: HasIds) -> Callable[[Array], MarginsOf]:
    """Return the model's own margins."""

    def block(rows: Array) -> MarginsOf:
        users = data.users[rows]

        def margins(position: int, items: Array, rivals: Array) -> Array:
            x = np.asarray(model.margins(users[position], data.items[items], data.items[rivals]))
            if x.shape != (len(items), len(rivals)):
                raise ValueError(
                    f"margins of {type(model).__name__} has shape {x.shape} for {len(items)} items and "
                    f"{len(rivals)} rivals; it must be items x rivals"
                )
            return x

        return margins

    return block


def scores_of(model: HasScores, users: Array, columns: Array) -> Array:
    """Return the scores of some users for some columns of the model, refusing another shape than users x items."""
    scores, expected = np.asarray(model.scores(users)), (len(users), len(model.items))
    if scores.shape != expected:
        raise ValueError(f"scores of the model have shape {scores.shape}; users x items is {expected}")
    same = len(columns) == scores.shape[1] and bool((columns == np.arange(len(columns))).all())
    return scores if same else scores[:, columns]


def _differences(scores: Array) -> MarginsOf:
    def margins(position: int, items: Array, rivals: Array) -> Array:
        row = scores[position]
        return np.asarray(row[items][:, None] - row[rivals][None, :])

    return margins


def positions(model: EvaluatedModel, data: HasIds) -> tuple[Array, Array]:
    """Return the rows and columns of the model that belong to the users and items of ``data``; it must know all."""
    return _positions(model.users, data.users, "user"), _positions(model.items, data.items, "item")


def _positions(ids: Array, wanted: Array, kind: str) -> Array:
    if len(ids) == len(wanted) and np.array_equal(ids, wanted):
        return np.arange(len(wanted))
    try:
        return np.asarray(Ids(ids, kind).positions(wanted))
    except ValueError as error:
        raise ValueError(
            f"the model does not know every {kind} of the data it is evaluated on: {error}. Fit it on the "
            "training part of the same split: the parts of a split share their ids"
        ) from error


def copied(model: Any, **settings: Any) -> Any:
    """Return a model that is not fitted, with the settings of ``model`` but for those given here."""
    if isinstance(model, type):
        raise TypeError(f"give a model, {model.__name__}(...), not its class")
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise TypeError(
            f"cannot copy and fit {type(model).__name__}: a model needs fit(data, show_progress=...) and get_params(), "
            "which returns the arguments of its constructor"
        )
    params = model.get_params()
    names = {**params, **opened(model)} if is_dataclass(model) else params
    for name in settings:
        if name not in names:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(params)}")
    return model.clone(**settings) if hasattr(model, "clone") else type(model)(**{**params, **settings})


def about(model: Any) -> dict[str, Any]:
    """Return class and settings of a model in plain values, as they stand in a results file."""
    kind = type(model)
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "settings": plain(model.get_params())}
