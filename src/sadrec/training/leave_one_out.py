"""How well a learner predicts each comparison from all others, without fitting again.

Every row of counted comparisons enters the beliefs through a parabola, a normal factor. Dividing it out of the belief
about the row's margin (the cavity of expectation propagation) leaves what the other comparisons say of it; see Vehtari
et al., "Bayesian leave-one-out cross-validation approximations for Gaussian latent variable models" (2016).
"""

from typing import Any

import numpy as np
from scipy.special import expit

from sadrec._moments import divided, moderated
from sadrec._types import Doubles
from sadrec.training.own_scores import Part
from sadrec.training.variational import Variational


def left_out_losses(learner: Variational) -> Doubles:
    """Return for each pair of items the log loss of its comparisons, in sum, each predicted from all others."""
    losses = np.zeros(len(learner.pairings.mean))
    for part in learner.parts:
        for count, sign, *left in left_out(learner, part):
            loss = count * np.logaddexp(0, -sign * moderated(*left))
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
    for count, sign, residual in ((wins, 1.0, 1 - p), (weight - wins, -1.0, -p)):
        linear = mean / variance + slope - single * (curvature * whole + weight * residual)
        sides.append((count, sign, linear / precision, 1 / precision))
    return sides
