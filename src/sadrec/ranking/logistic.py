"""Penalised logistic regression, the problem behind every vector that is computed after training."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import expit, log_expit

from sadrec._core.types import Doubles, Floats

Design = Doubles | Floats
"""The design matrix, a row per pair: products are computed in its precision."""

_NEAR = 1e-9
"""The largest expected gain of a step, relative to the objective, that ends the iteration."""

_POLISHING = 20
"""Steps without a new curvature, at most."""

_STEPS = 100
"""Newton's method needs fewer than ten; this many only if it is stuck at the limit of precision."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """The maximum of the penalised likelihood, and the curvature there.

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
    return float(weight @ log_expit(_margins(vector, design, offset)) - penalty @ vector**2)


def gradient(vector: Doubles, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Doubles:
    """Compute the gradient of :func:`objective`."""
    missing = weight * expit(-_margins(vector, design, offset))
    return np.asarray(missing.astype(design.dtype) @ design - 2 * penalty * vector)


def curvature(vector: Doubles, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Doubles:
    """Compute minus the Hessian of :func:`objective`: positive definite where every penalty is positive."""
    missing = expit(-_margins(vector, design, offset))
    scaled = design * np.sqrt(weight * missing * (1 - missing)).astype(design.dtype)[:, None]
    matrix = (scaled.T @ scaled).astype(np.float64)
    matrix.flat[:: len(vector) + 1] += 2 * penalty
    return np.asarray(matrix)


def _margins(vector: Doubles, design: Design, offset: Doubles) -> Doubles:
    """Return the margin of every pair."""
    return np.asarray(design @ vector.astype(design.dtype) + offset)


def maximise(
    design: Design,
    offset: Doubles,
    weight: Doubles,
    penalty: Doubles,
    start: Doubles | None = None,
    near: float = _NEAR,
) -> Estimate:
    """Return the maximum of :func:`objective`, by Newton's method with step halving.

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
            vector = vector + direction  # so near, a last step squares the distance
            return Estimate(vector, partial(_covariance, vector, *problem), steps + 1)
        length = 1.0  # half as far until the gain is a fair part of what was promised
        while (reached := objective(vector + length * direction, *problem)) < height + 1e-4 * length * promise:
            if length < 1e-8:
                break
            length /= 2
        vector, height = vector + length * direction, max(reached, height)
        steps += 1


def polish(rough: Estimate, design: Design, offset: Doubles, weight: Doubles, penalty: Doubles) -> Estimate:
    """Return the maximum of :func:`objective` from a point near it, with the curvature of that point.

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


def _covariance(vector: Doubles, design: Design, *rest: Doubles) -> Doubles:
    """Return the covariance of Laplace's approximation at a place."""
    return np.asarray(np.linalg.inv(curvature(vector, design, *rest)))


def check_regularization(regularization: float) -> None:
    """Raise on a penalty for which the problem has no solution."""
    if not (0 < regularization < np.inf):
        raise ValueError(
            f"regularization must be a number above 0, not {regularization!r}: without it the best vector is infinite"
        )
