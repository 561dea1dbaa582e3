"""Whether the chains agree: R-hat and effective sample size, on preferences, which are identified."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from sadrec.posterior.questions import Sampled, check_count

if TYPE_CHECKING:
    from sadrec.posterior.layout import ByUser

Floats = NDArray[np.float64]

GOOD = 1.05
"""Chains with a larger R-hat do not agree."""


def split_chains(draws: Floats) -> Floats:
    """Cut every chain in two, so that a chain that drifts disagrees with itself: (chains, draws, ...) in and out."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, draws.shape[1] - half :]))


def normal_scores(draws: Floats) -> Floats:
    """Replace values by the normal quantiles of their ranks over all chains."""
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return np.asarray(ndtri((ranks - 0.375) / (len(flat) + 0.25))).reshape(draws.shape)


def r_hat(draws: Floats) -> Floats:
    """Return the rank-normalised split R-hat (Vehtari et al. 2021), one number per quantity.

    Parameters
    ----------
    draws
        (chains, draws, ...), at least four draws per chain.
    """
    if draws.shape[1] < 4:
        raise ValueError(f"R-hat needs four draws per chain, not {draws.shape[1]}")
    halves = split_chains(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_r_hat(normal_scores(halves)), _plain_r_hat(normal_scores(folded)))


def _plain_r_hat(draws: Floats) -> Floats:
    count = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((count - 1) / count + between / within))


def effective_size(draws: Floats) -> Floats:
    """Return the effective sample size of the bulk (Vehtari et al. 2021), one number per quantity.

    Autocorrelations of the rank-normalised half chains are added up in pairs of neighbouring lags while the pairs are
    positive, each pair cut to the one before it (Geyer's initial monotone sequence).

    Parameters
    ----------
    draws
        (chains, draws, ...), at least four draws per chain.
    """
    if draws.shape[1] < 4:
        raise ValueError(f"the effective sample size needs four draws per chain, not {draws.shape[1]}")
    scores = normal_scores(split_chains(draws))
    chains, count = scores.shape[:2]
    centred = scores - scores.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, n=2 * count, axis=1)) ** 2
    covariance = np.fft.irfft(power, axis=1)[:, :count].mean(axis=0) / count
    within = covariance[0] * count / (count - 1)
    total = covariance[0] + scores.mean(axis=1).var(axis=0, ddof=1)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: count // 2 * 2 : 2] + rho[1 : count // 2 * 2 : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    time = 2 * np.where(positive, np.minimum.accumulate(pairs, axis=0), 0).sum(axis=0) - 1
    size = chains * count
    return np.asarray(size / np.maximum(time, 1 / np.log10(size)))


@dataclass(frozen=True)
class Diagnosis:
    """How well the chains agree on some preferences.

    Attributes
    ----------
    r_hat
        One per preference; 1 when chains cannot be told apart.
    effective_size
        How many independent draws the chains are worth, one per preference.
    """

    r_hat: Floats
    effective_size: Floats

    @property
    def share_good(self) -> float:
        """The share of preferences with R-hat at most 1.05."""
        return float((self.r_hat <= GOOD).mean())

    def __str__(self) -> str:
        return (
            f"R-hat <= {GOOD} for {self.share_good:.1%} of {len(self.r_hat):,} preferences (largest "
            f"{self.r_hat.max():.3f}); effective draws: median {np.median(self.effective_size):,.0f}, smallest "
            f"{self.effective_size.min():,.0f}"
        )


class Diagnostics(Sampled):
    """Whether the draws can be trusted."""

    observed: "ByUser"
    _observed_user: NDArray[np.int32]

    def observed_pairs(
        self, number: int | None = None, seed: int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return rows (user, winner, loser) of comparisons that were learnt from: all, or a random choice."""
        rows = np.arange(len(self._observed_user))
        if number is not None and check_count("number", number) < len(rows):
            rows = np.sort(np.random.default_rng(seed).choice(len(rows), number, replace=False))
        return self._observed_user[rows], self.observed.winner[rows], self.observed.loser[rows]

    def diagnose(self, number: int | None = 500, seed: int = 0) -> Diagnosis:
        """Return R-hat and effective sample size of the preferences in some of the comparisons learnt from.

        Parameters
        ----------
        number
            How many comparisons, chosen at random; None means all.
        seed
            Of that choice.
        """
        user, item, rival = self.observed_pairs(number, seed)
        found: list[tuple[Floats, Floats]] = []
        for start in range(0, len(user), 500):
            part = slice(start, start + 500)
            x = self.drawn.preference(user[part], item[part], rival[part])
            x = x.reshape(self.drawn.chains, -1, x.shape[1])
            found.append((r_hat(x), effective_size(x)))
        return Diagnosis(np.concatenate([one for one, _ in found]), np.concatenate([size for _, size in found]))

    def to_arviz(self, pairs: Any = None, number: int = 200, seed: int = 0) -> Any:
        """Return an ArviZ ``InferenceData`` with draws of preferences, which are identified; the factors are not.

        Parameters
        ----------
        pairs
            Ids or sequences of ids (users, items, rivals), users None for the crowd; None takes some of the comparisons
            that were learnt from.
        number, seed
            How many of them, and the seed of the choice.

        Returns
        -------
        arviz.InferenceData
            With ``preference`` and ``probability``, (chain, draw, comparison), and ``prior_scale``.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_arviz needs ArviZ: pip install 'sadrec[posterior]'") from error
        from scipy.special import ndtr

        rows = self.observed_pairs(number, seed) if pairs is None else self._rows(*pairs)
        crowd = rows[0] is None
        user, item, rival = np.broadcast_arrays(*map(np.atleast_1d, (0 if crowd else rows[0], *rows[1:])))
        x = self.drawn.preference(None if crowd else user, item, rival)
        x = x.reshape(self.drawn.chains, -1, x.shape[1])
        who = np.full(len(user), "everybody") if crowd else self.user_ids.array[user]
        items = self.item_ids.array
        names = [f"{u}: {i} over {j}" for u, i, j in zip(who, items[item], items[rival], strict=True)]
        return arviz.from_dict(
            posterior={"preference": x, "probability": ndtr(x), "prior_scale": self.drawn.scales.astype(np.float64)},
            coords={"comparison": names, "part": ["user", "item", "rival"]},
            dims={"preference": ["comparison"], "probability": ["comparison"], "prior_scale": ["part"]},
        )

    def trace_plot(self, user: Any, item: Any, rival: Any, path: str | Path | None = None) -> Any:
        """Draw the chains of one preference, sweep by sweep, and its distribution in each.

        Parameters
        ----------
        user, item, rival
            Ids; ``user=None`` is the mean over all users.
        path
            Where to save the figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("trace_plot needs matplotlib: pip install 'sadrec[plot]'") from error
        x = self.drawn.preference(*self._rows(user, item, rival))
        if x.ndim > 1:
            raise ValueError(f"a trace shows one preference, not {x[0].size}: give one user, one item and one rival")
        x = x.reshape(self.drawn.chains, -1)
        figure = Figure(figsize=(9, 3), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        for number, chain in enumerate(x):
            left.plot(chain, linewidth=0.5, label=f"chain {number}")
            right.hist(chain, bins=40, density=True, histtype="step", orientation="horizontal")
        left.set(xlabel="draw", ylabel="preference")
        right.set(xlabel="density")
        who = "everybody" if user is None else user
        figure.suptitle(f"{who}: {item} over {rival} (R-hat {float(r_hat(x[:, :, None])[0]):.3f})")
        if path is not None:
            figure.savefig(path)
        return figure
