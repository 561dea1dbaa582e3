"""Fit comparisons with and without factors, and keep the fit that predicts left-out comparisons better.

Without factors there are scores, margins of single pairings, and the scores of single users. Where people
differ item by item and not along a few directions, as the seasons of a league do, that predicts better; and it is all
that a few comparisons can tell.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sadrec._core.linear import blas_threads
from sadrec._core.memory import give_back
from sadrec._core.moments import divided, moderated
from sadrec._core.record import Arrays
from sadrec._core.types import Doubles
from sadrec.training.loop import DivergedError, Figures
from sadrec.training.sgd.given import Pairs
from sadrec.training.variational.beyond_factors import Part
from sadrec.training.variational.counts import Counts, count
from sadrec.training.variational.solver import Variational

EVIDENCE = 10.0
"""The least gain in left-out log likelihood that decides, in nats; less may be an error of the approximation."""
ERRORS = 3.0
"""The least gain in standard errors of its sum over pairs of items; less may be chance.

Where less is gained, one user has scores, which are easier to read, and several users have factors, which visitors and
lists are made of.
"""


class Learners:
    """One learner with factors and one without, which make their sweeps together.

    The arguments are those of :class:`~sadrec.training.variational.solver.Variational`, before comparisons are counted.
    Features predict factors: with features there is no learner without factors.
    """

    def __init__(
        self, pairs: Pairs, users: int, items: int, factors: int, seed: int, rivals: bool = True, **options: Any
    ) -> None:
        counts = count(pairs, items)
        lengths = [factors]
        featured = any(side is not None for side in options.get("features", ()))
        if factors and not featured and (users > 1 or rivals):
            lengths.append(0)
        self.learners = [Variational(counts, users, items, length, seed, rivals, **options) for length in lengths]
        self._one_user = users == 1
        give_back()  # what counting took

    @property
    def sweep(self) -> int:
        """The number of sweeps made."""
        return self.learners[0].sweep

    @property
    def counts(self) -> Counts:
        """The comparisons, counted; before :meth:`~sadrec.training.variational.solver.Variational.finish`."""
        rows = self.learners[0].rows
        return Counts(rows.user, rows.item, rows.rival, rows.weight, rows.wins)

    @property
    def last_stage(self) -> int:
        """The last sweep that adds or removes a part of the model."""
        return self.learners[0].last_stage

    @property
    def total(self) -> float:
        """The number of comparisons, by weight."""
        return self.learners[0].total

    def make_sweep(self) -> float:
        """Make a sweep of both; return the mean log likelihood of the comparisons by the first."""
        active = self._active
        with blas_threads(1):  # else what NumPy adds up depends on how many others do so at the time
            likelihood, *_ = [learner.make_sweep() for learner in active]
        if len(active) < len(self.learners):
            self.learners[0].sweep += 1
        give_back()
        return likelihood

    @property
    def _active(self) -> list[Variational]:
        """The learners that make sweeps: once the first has lost all factors, it equals the second and is left out."""
        without_factors = len(self.learners) > 1 and self.learners[0].beliefs.user.shape[1] == 1
        return self.learners[1:] if without_factors else self.learners

    def chosen(self) -> tuple[Variational, list[float]]:
        """Return the better learner, and the left-out log loss of each, with factors first."""
        losses = [left_out_losses(learner) for learner in self._active]
        if len(losses) < len(self.learners):
            return self.learners[-1], 2 * [float(losses[0].sum()) / self.total]
        gain = losses[-1] - losses[0]
        needed = max(EVIDENCE, ERRORS * float(np.sqrt(len(gain)) * gain.std()))
        least = needed if self._one_user else -needed
        chosen = self.learners[0 if gain.sum() > least else -1]
        return chosen, [float(loss.sum()) / self.total for loss in losses]

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        states = [learner.state() for learner in self.learners]
        arrays = {f"{number}_{name}": array for number, (_, of) in enumerate(states) for name, array in of.items()}
        return {"sweep": self.sweep, "learners": [values for values, _ in states]}, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave; see :meth:`Variational.restore`."""
        if len(values["learners"]) != len(self.learners):
            raise ValueError(f"it has {len(values['learners'])} learners, and this fit has {len(self.learners)}")
        steps = []
        for number, (learner, own) in enumerate(zip(self.learners, values["learners"], strict=True)):
            if own["sweep"] != values["sweep"]:
                raise ValueError(f"learner {number} is at sweep {own['sweep']}, and not at {values['sweep']}")
            start = f"{number}_"
            of_learner = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
            steps.append(learner.checked(own, of_learner))
        for step in steps:  # all of them, or none: an older state is used where one is refused
            step()


class Sweeps:
    """Sweeps of a learner, or of several, as a :class:`~sadrec.training.loop.Step`; a sweep is never broken off."""

    keeps: Literal["best", "last"] = "last"
    judged = False

    def __init__(self, learners: Learners | Variational, total: int):
        self.learners, self.total = learners, total
        self.ready = True

    @property
    def done(self) -> int:
        """The number of sweeps done."""
        return self.learners.sweep

    @property
    def settled(self) -> int:
        """The sweep from which on no part of the model comes or goes."""
        return self.learners.last_stage + 1

    def advance(self, check: Callable[[], None]) -> Figures:
        """Make a sweep and return its figures."""
        start = time.perf_counter()
        self.ready = False
        likelihood = self.learners.make_sweep()
        if not math.isfinite(likelihood):
            raise DivergedError(f"sweep {self.done} diverged: divide all weights by a common number")
        self.ready = True
        updates = self.learners.total
        speed = updates / max(time.perf_counter() - start, 1e-9)
        return {"log_likelihood": likelihood, "updates": updates, "updates_per_second": speed}

    def judge(self) -> Figures:
        """Return nothing: there is no held-out data."""
        return {}

    def snapshot(self) -> None:
        """Return nothing: there is no way back, and none is needed."""

    def restore(self, snapshot: Any) -> None:
        """Do nothing: there are no snapshots."""

    def record(self, snapshot: Any = None) -> tuple[dict[str, Any], Arrays]:
        """Return what the next sweep depends on."""
        return self.learners.state()

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Go to where :meth:`record` was called."""
        self.learners.restore(values, arrays)

    def learnt(self, finished: bool = False) -> Any:
        """Return nothing: ``ModelSweeps`` of models/variational.py makes the state, of which training knows nothing."""

    def close(self) -> None:
        """Do nothing: the threads are not those of this step."""


# -- how well a learner predicts each comparison from all others, without fitting again -------------------------------
#
# Every row of counted comparisons enters the beliefs through a parabola, a normal factor. Dividing it out of the belief
# about the row's margin (the cavity of expectation propagation) leaves what the other comparisons say of it; see
# Vehtari et al., "Bayesian leave-one-out cross-validation approximations for Gaussian latent variable models" (2016).


def left_out_losses(learner: Variational) -> Doubles:
    """Return for each pair of items the sum of the log losses of its comparisons, each predicted from all others."""
    losses = np.zeros(len(learner.pairings.mean))
    for part in learner.parts:
        for number, sign, *left in left_out(learner, part):
            loss = number * np.logaddexp(0, -sign * moderated(*left))
            losses += np.bincount(learner.rows.pairing[part.rows], loss, len(losses))
    return losses


def left_out_margins(learner: Variational) -> tuple[Doubles, Doubles]:
    """Return mean and variance of the margin of each row, won and lost, when one such comparison is left out.

    Both have two columns: of the row without one win, and without one loss.
    """
    parts: list[Any] = [left_out(learner, part) for part in learner.parts]
    columns = [[np.concatenate([part[side][moment] for part in parts]) for side in (0, 1)] for moment in (2, 3)]
    mean, variance = (np.stack(sides, axis=1) for sides in columns)
    return mean, variance


def left_out(learner: Variational, part: Part) -> list[tuple[Doubles, float, Doubles, Doubles]]:
    """Return for wins and for losses of some rows: how many, the sign of the margin, and its mean and variance.

    These are what is believed of the margin when one of the row's wins, or losses, is left out.
    """
    rows, at = learner.rows, part.rows
    curvature, slope, weight, wins = (side[at] for side in (rows.curvature, rows.slope, rows.weight, rows.wins))
    others = learner.beside_factors(part)  # parts of the margin, each with its own mean and variance
    mean, variance = rows.mean[at] + learner.common_part(at), rows.variance[at]
    whole = mean + sum(added for added, _ in others)
    spread = variance + sum(added for _, added in others)
    without = [divided(*other, curvature, slope - curvature * (whole - other[0])) for other in others]
    elsewhere, unknown = (sum((side[which] for side in without), np.zeros(len(mean))) for which in (0, 1))
    # What the row says of the factors is as uncertain as the other parts of the margin.
    seen = curvature / (1 + curvature * unknown)
    mean, variance = divided(mean, variance, seen, seen * (slope / curvature - elsewhere))
    mean, variance = mean + elsewhere, variance + unknown
    p = expit(moderated(whole, spread))
    single = np.minimum(1.0, weight) / weight  # a row holds equal comparisons, of which one is left out
    precision = 1 / variance + curvature * (1 - single)
    sides = []
    for number, sign, residual in ((wins, 1.0, 1 - p), (weight - wins, -1.0, -p)):
        linear = mean / variance + slope - single * (curvature * whole + weight * residual)
        sides.append((number, sign, linear / precision, 1 / precision))
    return sides
