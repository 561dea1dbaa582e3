"""The concave problem behind every vector that is computed after training: a penalised logistic regression."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sadrec._types import Doubles, Floats
from sadrec.ranking.pairs import sigmoid

Design = Doubles | Floats
"""What a vector is multiplied with, a row per pair: products are computed in its precision, sums of them in double."""

_SMALL = 256
"""Factors up to which one thread is faster than the start of several."""

_NEAR = 1e-9
"""What the next step may promise to gain, relative to the objective, for it to be the last."""

_POLISHING = 20
"""Steps without a new curvature, at most."""

_STEPS = 100
"""Newton's method needs fewer than ten; this many only if it is stuck at the limit of precision."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Where the penalised likelihood is highest, and its shape there.

    The covariance is the inverse of minus the Hessian: that of Laplace's approximation to the posterior under the
    normal prior that the penalty stands for.
    """

    vector: Doubles
    covariance_at: Callable[[], Doubles]  # computes it: most who ask for the vector do not need it
    steps: int

    @cached_property
    def covariance(self) -> Doubles:
        """The covariance of Laplace's approximation."""
        return self.covariance_at()


def objective(vector: Doubles, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> float:
    """Compute the penalised log likelihood ``sum_p w_p log sigmoid(z_p . v + o_p) - sum_h penalty_h v_h^2``.

    ``design`` holds z, a row per pair; ``offset`` holds o, and ``weight`` holds w.
    """
    if len(vector) <= _SMALL:
        from sadrec.ranking._descent import logistic_height  # numba is worth loading only now

        return logistic_height(design, offset, weight, _like(vector, design)) - float(penalty @ vector**2)
    from scipy.special import log_expit

    return float(weight @ log_expit(_margins(vector, design, offset)) - penalty @ vector**2)


def gradient(vector: Doubles, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Doubles:
    """Compute the gradient of :func:`objective`."""
    if len(vector) <= _SMALL:
        from sadrec.ranking._descent import logistic_slope  # numba is worth loading only now

        slope = np.empty(len(vector))
        logistic_slope(design, offset, weight, _like(vector, design), slope)
        return slope - 2 * penalty * vector
    missing = sigmoid(-_margins(vector, design, offset))
    return np.asarray(np.einsum("p,ph->h", weight * missing, design) - 2 * penalty * vector)


def curvature(vector: Doubles, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Doubles:
    """Compute minus the Hessian of :func:`objective`: positive definite where every penalty is positive."""
    if len(vector) <= _SMALL:
        from sadrec.ranking._descent import logistic_bends, weighted_gram  # numba is worth loading only now

        bends = np.empty(len(design))
        logistic_bends(design, offset, weight, _like(vector, design), bends)
        matrix = weighted_gram(design, bends)
    else:
        missing = sigmoid(-_margins(vector, design, offset))
        scaled = np.multiply(design, np.sqrt(weight * missing * (1 - missing))[:, None], dtype=np.float64)
        matrix = scaled.T @ scaled
    matrix.flat[:: len(vector) + 1] += 2 * penalty
    return np.asarray(matrix)


def _margins(vector: Doubles, design: Design, offset: Doubles) -> Doubles:
    """Return the margin of every pair."""
    return np.asarray(np.einsum("ph,h->p", design, vector) + offset)


def _like(vector: Doubles, design: Design) -> Design:
    """Return a vector in the precision of a design."""
    return vector if design.dtype == np.float64 else vector.astype(np.float32)


def maximise(
    design: Design,
    offset: Doubles,
    weight: Doubles,
    penalty: Doubles,
    start: Doubles | None = None,
    near: float = _NEAR,
) -> Estimate:
    """Return where :func:`objective` is highest, by Newton's method with steps shortened where they overshoot.

    The problem is concave and, with positive penalties, has exactly one answer, wherever the search starts. The last
    step is the one that promises to gain no more than ``near``, relative to the objective.
    """
    vector = np.zeros(design.shape[1]) if start is None else start
    problem = (design, offset, weight, penalty)
    height, steps = objective(vector, *problem), 0
    while True:
        slope, shape = gradient(vector, *problem), curvature(vector, *problem)
        direction = np.asarray(np.linalg.solve(shape, slope), np.float64)
        # Twice what the step would gain if the objective were a parabola.
        promise = float(slope @ direction)
        if promise <= near * (1 + abs(height)) or steps == _STEPS:
            # So near, a last step squares the distance, and the shape is what it will be there.
            return Estimate(vector + direction, partial(inverse, shape), steps + 1)
        vector, height = _climb(lambda moved: objective(moved, *problem), vector, height, direction, promise)
        steps += 1


def polish(rough: Estimate, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Estimate:
    """Return where :func:`objective` is highest, from a place near it, with the curvature there for all steps.

    Where that is not near enough, :func:`maximise` takes over.
    """
    problem = (design, offset, weight, penalty)
    vector, shape = rough.vector, curvature(rough.vector, *problem)
    close = _NEAR * (1 + abs(objective(vector, *problem)))
    before = np.inf
    for steps in range(1, _POLISHING):
        slope = gradient(vector, *problem)
        direction = np.asarray(np.linalg.solve(shape, slope), np.float64)
        promise = float(slope @ direction)
        if promise > before / 4:
            break
        vector, before = vector + direction, promise
        if promise <= close:
            return Estimate(vector, partial(_covariance, vector, *problem), rough.steps + steps)
    return maximise(design.astype(np.float64), offset, weight, penalty, start=rough.vector)


def _climb(
    height_at: Callable[[Doubles], float], vector: Doubles, height: float, direction: Doubles, promise: float
) -> tuple[Doubles, float]:
    """Go along a direction, half as far until the gain is a fair part of what was promised; return where, how high."""
    length = 1.0
    while True:
        moved = vector + length * direction
        reached = height_at(moved)
        if reached >= height + 1e-4 * length * promise or length < 1e-8:
            return moved, max(reached, height)
        length /= 2


def maximise_sparse(
    design: Design, offset: Doubles, weight: Doubles, penalty: Doubles, l1: Doubles, lowest: Doubles
) -> Estimate:
    """Return where ``objective - sum_h l1_h |v_h|`` is highest among vectors with ``v_h >= lowest_h``, lowest <= 0.

    Newton's method again: the parabola that touches the smooth part is maximised together with the rest, entry by
    entry, which puts entries exactly on 0 or on their bound. The covariance is that of the entries with a penalty,
    given the others, whose rows are 0.
    """
    from sadrec.ranking._descent import top_of_parabola  # numba is worth loading only now

    vector = np.zeros(design.shape[1])
    problem = (design, offset, weight, penalty)

    def height_at(moved: Doubles) -> float:
        return objective(moved, *problem) - float(l1 @ np.abs(moved))

    height, steps = height_at(vector), 0
    while True:
        slope, shape = gradient(vector, *problem), curvature(vector, *problem)
        direction = top_of_parabola(slope, shape, vector, l1, lowest, 1e-9) - vector
        promise = float(slope @ direction - l1 @ (np.abs(vector + direction) - np.abs(vector)))
        if promise <= 1e-12 * (1 + abs(height)) or steps == _STEPS:
            break
        vector, height = _climb(height_at, vector, height, direction, promise)
        steps += 1
    free = penalty > 0
    covariance = np.zeros(shape.shape)
    covariance[np.ix_(free, free)] = np.linalg.inv(shape[np.ix_(free, free)])
    return Estimate(vector, lambda: covariance, steps)


def _covariance(vector: Doubles, design: Design, *more: Doubles) -> Doubles:
    """Return the covariance of Laplace's approximation at a place."""
    return inverse(curvature(vector, design, *more))


def inverse(shape: Doubles) -> Doubles:
    """Return the inverse of a curvature."""
    return np.asarray(np.linalg.inv(shape), np.float64)


def check_regularization(regularization: float) -> None:
    """Refuse a penalty that leaves the problem without an answer."""
    if not (0 < regularization < np.inf):
        raise ValueError(
            f"regularization must be a number above 0, not {regularization!r}: without it the best vector is infinite"
        )
