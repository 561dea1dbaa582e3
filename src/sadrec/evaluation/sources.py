"""Where margins come from: factor matrices, scores, or a model's own ``margins``; rows and columns of the data in."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sadrec.data.ids import Ids
from sadrec.evaluation.protocol import EvaluatedModel, HasIds, HasMargins, HasProbability, HasScores, as_evaluated
from sadrec.ranking import Parameters
from sadrec.ranking.pairs import sigmoid

Array = NDArray[Any]
# (position in the block, columns of items, columns of rivals) -> margins, items x rivals
Block = Callable[[int, Array, Array], Array]


class Source(Protocol):
    """Margins of one model, asked for in rows and columns of the data."""

    concurrent: bool
    """Whether blocks may be worked on by several threads."""

    def block(self, rows: Array) -> Block:
        """Prepare the margins of some users."""

    def probability(self, row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        """Probabilities of the same comparisons as ``margins``, or ``None`` when the model offers none."""


class FactorSource:
    """Margins from factor matrices: one matrix product per user, or differences of scores when T is all ones."""

    concurrent = True

    def __init__(self, parameters: Parameters, users: Array, items: Array, probable: bool) -> None:
        self._xi = parameters.extend_users(np.asarray(parameters.user_factors)[users])
        eta, tau = parameters.extend_items(items)
        self._probable = probable
        self._scored = parameters.rival_factors is None
        # x_uij = [xi*eta_i, xi*tau_i] . [tau_j, -eta_j]: a row of each per item, side by side.
        self._items = eta if self._scored else np.hstack([eta, tau])
        self._rivals = eta if self._scored else np.hstack([tau, -eta])

    def block(self, rows: Array) -> Block:
        """Prepare the margins of some users."""
        if self._scored:
            return _differences(self._xi[rows] @ self._items.T)
        doubled = np.hstack([self._xi[rows], self._xi[rows]])

        def margins(position: int, items: Array, rivals: Array) -> Array:
            left = self._items[items] * doubled[position]
            return np.asarray(left @ self._rivals[rivals].T)

        return margins

    def probability(self, row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        """Logistic probabilities, when the model offers any."""
        return sigmoid(margins) if self._probable else None


class ScoreSource:
    """Margins as differences of a scores-only model's scores, asked for a block of users at a time."""

    concurrent = False

    def __init__(self, model: HasScores, users: Array, columns: Array | None) -> None:
        self._model = model
        self._users = users
        self._columns = columns

    def block(self, rows: Array) -> Block:
        """Prepare the margins of some users."""
        scores = np.asarray(self._model.scores(self._users[rows]))
        expected = (len(rows), len(self._model.items))
        if scores.shape != expected:
            raise ValueError(f"scores of the model have shape {scores.shape}; users x items is {expected}")
        return _differences(scores if self._columns is None else scores[:, self._columns])

    def probability(self, row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        """Return none, unless the model offers probabilities."""
        return _asked(self._model, self._users[row], items, rivals, self._model.items, self._columns)


class MarginSource:
    """Margins from the model's own ``margins``, by ids: the protocol as it stands."""

    concurrent = False

    def __init__(self, model: HasMargins, users: Array, items: Array) -> None:
        self._model = model
        self._users = users
        self._items = items

    def block(self, rows: Array) -> Block:
        """Prepare the margins of some users."""
        users = self._users[rows]

        def margins(position: int, items: Array, rivals: Array) -> Array:
            x = np.asarray(self._model.margins(users[position], self._items[items], self._items[rivals]))
            if x.shape != (len(items), len(rivals)):
                raise ValueError(
                    f"margins of {type(self._model).__name__} has shape {x.shape} for {len(items)} items and "
                    f"{len(rivals)} rivals; it must be items x rivals"
                )
            return x

        return margins

    def probability(self, row: int, items: Array, rivals: Array, margins: Array) -> Array | None:
        """Probabilities of the model, when it offers any."""
        return _asked(self._model, self._users[row], items, rivals, self._items, None)


def source_of(model: object, data: HasIds, *, factors: bool = True) -> Source:
    """Choose where the margins of ``model`` come from.

    Parameters
    ----------
    model
        Anything the protocol allows.
    data
        The interactions or comparisons whose rows and columns will be asked for.
    factors
        Whether ``model.parameters`` may be used directly; without it the protocol's verbs are, which is slower and
        gives the same numbers.
    """
    given = as_evaluated(model)
    users, items = positions(given, data)
    parameters = getattr(model, "parameters", None)
    if factors and isinstance(parameters, Parameters):
        return FactorSource(parameters, users, items, isinstance(model, HasProbability))
    if isinstance(model, HasMargins) and not getattr(model, "margins_are_differences", False):
        return MarginSource(model, data.users, data.items)
    same = len(items) == len(given.items) and bool((items == np.arange(len(items))).all())
    scored = model if isinstance(model, HasScores) else given
    return ScoreSource(scored, data.users, None if same else items)


def positions(model: EvaluatedModel, data: HasIds) -> tuple[Array, Array]:
    """Rows and columns of the model that belong to the users and items of ``data``.

    Raises
    ------
    ValueError
        When the model does not know one of them.
    """
    return _positions(model.users, data.users, "user"), _positions(model.items, data.items, "item")


def _positions(known: Array, wanted: Array, kind: str) -> Array:
    if len(known) == len(wanted) and np.array_equal(known, wanted):
        return np.arange(len(wanted))
    try:
        return np.asarray(Ids(known).positions(wanted))
    except ValueError as error:
        raise ValueError(
            f"the model does not know every {kind} of the data it is evaluated on: {error}. Fit it on the "
            "training part of the same split: the parts of a split share their ids"
        ) from error


def _differences(scores: Array) -> Block:
    def margins(position: int, items: Array, rivals: Array) -> Array:
        row = scores[position]
        return np.asarray(row[items][:, None] - row[rivals][None, :])

    return margins


def _asked(model: object, user: Any, items: Array, rivals: Array, ids: Array, columns: Array | None) -> Array | None:
    if not isinstance(model, HasProbability):
        return None
    if columns is not None:
        items, rivals = columns[items], columns[rivals]
    return np.asarray(model.probability(user, ids[items][:, None], ids[rivals][None, :]), dtype=np.float64)
