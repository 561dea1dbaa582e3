"""Calibration: when a model says 70 %, is it right in 70 of 100 cases."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data import Comparisons, Interactions
from sadrec.evaluation import HasProbability
from studies._tools import COLOURS, Plan, margins_and_probabilities, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUMS = 7
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """Predicted against observed shares.

    Attributes
    ----------
    frame
        One row per bin that is not empty: low, high (its ends), predicted (mean probability given to the favourite),
        observed (share of cases in which the favourite won), error (standard error of observed, users taken as whole
        clusters), weight (share of all cases), pairs.
    error
        Expected calibration error: the mean of abs(predicted - observed), bins weighted by ``weight``.
    """

    frame: pl.DataFrame
    error: float

    def plot(self, label: str = "model") -> "Figure":
        """Draw observed over predicted shares with 95 % intervals; the diagonal is perfect calibration."""
        return plot_calibration({label: self})


def calibration(
    model: object,
    train: Interactions | Comparisons,
    held_out: Interactions | Comparisons,
    *,
    pairs: Literal["rated", "sampled"] = "rated",
    bins: int = 10,
    seed: int = 0,
    num_threads: int = 0,
) -> Calibration:
    """Compare the probabilities of a model with what happened.

    Every pair is looked at from the side of the model's favourite, so probabilities run from 0.5 to 1 and "observed" is
    the share of pairs in which the favourite won. All pairs of a user together weigh as much as those of any other.

    Parameters
    ----------
    model
        A model with ``probability(user, item, rival)``.
    train, held_out
        The two parts of a split. Held-out comparisons are the pairs themselves.
    pairs
        ``"rated"``: held-out against liked items whose ratings differ; ``"sampled"``: held-out against sampled items,
        where the held-out one is taken to win.
    bins
        Number of bins of equal width between 0.5 and 1.
    seed
        What the sampled items are keyed by.
    """
    if not isinstance(model, HasProbability):
        raise ValueError(
            f"{type(model).__name__} offers no probability(user, item, rival); there is nothing to calibrate"
        )
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    if pairs not in ("rated", "sampled"):
        raise ValueError(f"pairs must be 'rated' or 'sampled', got {pairs!r}")
    if isinstance(held_out, Comparisons) or isinstance(train, Comparisons):
        if not isinstance(held_out, Comparisons):
            raise TypeError("one part is interactions and the other comparisons; give the two parts of one split")
        held_out = held_out.decided
        _, p = margins_and_probabilities(model, held_out)
        sums = _binned(p, held_out.user_index, np.ones(len(held_out)), len(held_out.users), bins)
    else:
        plan = Plan(model, train, held_out, seed)
        sums = sum(plan.each(partial(_sums, plan, pairs, bins), num_threads), np.zeros((_SUMS, bins)))
    weight, forecast, seen, count, seen2, cross, weight2 = sums
    if not weight.sum():
        raise ValueError("no held-out pair has a known order: the ratings of every user are all alike")
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = seen / weight
        spread = np.sqrt(np.maximum(seen2 - 2 * observed * cross + observed**2 * weight2, 0)) / weight
        predicted = forecast / weight
    edges = np.linspace(0.5, 1.0, bins + 1)
    frame = pl.DataFrame(
        {
            "low": edges[:-1],
            "high": edges[1:],
            "predicted": predicted,
            "observed": observed,
            "error": spread,
            "weight": weight / weight.sum(),
            "pairs": count.astype(np.int64),
        }
    ).filter(pl.Series(weight > 0))
    gap = float((frame["weight"] * (frame["predicted"] - frame["observed"]).abs()).sum())
    return Calibration(frame, gap)


def _sums(plan: Plan, kind: str, bins: int, rows: NDArray[Any]) -> Doubles:
    pairs, contest, owner = plan.compared(rows)
    if kind == "rated":
        counted = pairs.unequal
        p, user, won = pairs.probability, owner[pairs.case], np.asarray(pairs.outcome > 0, dtype=np.float64)
    else:
        p, user = contest.probability, owner[contest.case]
        counted, won = np.ones(len(user), dtype=bool), np.ones(len(user))
    return _binned(None if p is None else p[counted], user[counted], won[counted], len(rows), bins)


def _binned(p: NDArray[Any] | None, user: NDArray[Any], won: Doubles, users: int, bins: int) -> Doubles:
    """Return seven sums over users by bin, of probabilities p that ``won`` says were right or not."""
    if p is None:
        raise ValueError("the model offers no probability")
    p = np.asarray(p, dtype=np.float64)
    sure = np.maximum(p, 1 - p)
    right = np.where(p > 0.5, won, np.where(p < 0.5, 1 - won, 0.5))
    share = 1.0 / np.bincount(user, minlength=users)[user] if len(user) else np.empty(0)
    place = np.minimum(((sure - 0.5) * 2 * bins).astype(np.int64), bins - 1)
    cell, size = user * np.int64(bins) + place, users * bins
    weight, forecast, seen, count = (
        np.bincount(cell, weights=values, minlength=size).reshape(-1, bins)
        for values in (share, share * sure, share * right, np.ones(len(cell)))
    )
    return np.stack(
        [x.sum(axis=0) for x in (weight, forecast, seen, count, seen * seen, seen * weight, weight * weight)]
    )


def plot_calibration(curves: dict[str, Calibration]) -> "Figure":
    """Draw the calibration of several models, by label, in one picture."""
    figure = new_figure(4.6, 4.4)
    panel = figure.subplots()
    panel.plot([0.5, 1], [0.5, 1], "--", color="#888888", linewidth=1, label="perfect")
    for place, (label, curve) in enumerate(curves.items()):
        frame = curve.frame
        panel.errorbar(
            frame["predicted"].to_numpy(),
            frame["observed"].to_numpy(),
            yerr=1.96 * frame["error"].to_numpy(),
            fmt="o-",
            color=COLOURS[place % len(COLOURS)],
            markersize=4,
            capsize=2,
            label=f"{label} (error {curve.error:.3f})",
        )
    panel.set_xlabel("probability the model gives its favourite")
    panel.set_ylabel("share in which the favourite won")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=8)
    return figure
