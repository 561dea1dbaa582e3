"""Convergence: R-hat and effective sample size of preferences, which are identified."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from sadrec._core.types import Doubles
from sadrec.posterior.belief import LOGIT_PER_PROBIT
from sadrec.posterior.draws import SCALES, Draws

GOOD = 1.05
"""Chains with a larger R-hat do not agree."""


def split_chains(draws: Doubles) -> Doubles:
    """Cut every chain in two, so that a chain that drifts disagrees with itself: (chains, draws, ...) in and out."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, draws.shape[1] - half :]))


def normal_scores(draws: Doubles) -> Doubles:
    """Replace values by the normal quantiles of their ranks over all chains."""
    flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return np.asarray(ndtri((ranks - 0.375) / (len(flat) + 0.25))).reshape(draws.shape)


def r_hat(draws: Doubles) -> Doubles:
    """Return the rank-normalised split R-hat (Vehtari et al. 2021) of draws (chains, draws, ...), one per quantity."""
    if draws.shape[1] < 4:
        raise ValueError(f"R-hat needs four draws per chain, not {draws.shape[1]}")
    halves = split_chains(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_r_hat(normal_scores(halves)), _plain_r_hat(normal_scores(folded)))


def _plain_r_hat(draws: Doubles) -> Doubles:
    count = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt((count - 1) / count + between / within))


def effective_size(draws: Doubles) -> Doubles:
    """Return the effective sample size of the bulk (Vehtari et al. 2021), one number per quantity.

    Autocorrelations of the rank-normalised half chains are added up in pairs of neighbouring lags while the pairs are
    positive, each pair cut to the one before it (Geyer's initial monotone sequence).
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
    """R-hat and effective sample sizes of some preferences."""

    r_hat: Doubles  # 1 when chains cannot be told apart
    effective_size: Doubles  # how many independent draws the chains are worth

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


def diagnose(draws: Draws, user: Any, item: Any, rival: Any) -> Diagnosis:
    """Return R-hat and effective sample size of some preferences, given as rows."""
    parts = []
    for start in range(0, len(user), 500):
        part = slice(start, start + 500)
        x = by_chain(draws, user[part], item[part], rival[part])
        parts.append((r_hat(x), effective_size(x)))
    return Diagnosis(np.concatenate([one for one, _ in parts]), np.concatenate([size for _, size in parts]))


def by_chain(draws: Draws, user: Any, item: Any, rival: Any) -> Doubles:
    """Return draws of preferences, (chains, draws, preferences)."""
    x = draws.preference(user, item, rival)
    return x.reshape(draws.chains, draws.per_chain, -1)


def to_arviz(draws: Draws, user: Any, item: Any, rival: Any, names: list[str]) -> Any:
    """Return an ArviZ ``InferenceData`` with draws of preferences, given as rows, under some names."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'sadrec[posterior]'") from error
    x = by_chain(draws, user, item, rival)
    return arviz.from_dict(
        posterior={
            "preference": LOGIT_PER_PROBIT * x,
            "probability": ndtr(x),
            "prior_scale": draws.scales.astype(np.float64),
        },
        coords={"comparison": names, "part": list(SCALES[: draws.scales.shape[2]])},
        dims={"preference": ["comparison"], "probability": ["comparison"], "prior_scale": ["part"]},
    )
