"""Lists: the best N of the whole catalogue, against the user's test items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles


@dataclass(frozen=True)
class Hits:
    """Which of the recommended items are among a user's test items."""

    hit: NDArray[np.bool_]  # users x N, best first; a place that could not be filled is no hit
    relevant: NDArray[Any]  # how many test items each user has; at least 1
    items: NDArray[Any]  # the recommended columns, users x N; -1 where fewer than N items are left

    @property
    def length(self) -> int:
        """N, the length of the lists."""
        return int(self.hit.shape[1])

    def first(self, n: int) -> "Hits":
        """Return the same with shorter lists."""
        return Hits(self.hit[:, :n], self.relevant, self.items[:, :n])

    def mean_over_list(self, of_item: NDArray[Any]) -> Doubles:
        """Average a property of items over each user's list, places not filled left out (NaN if none is)."""
        filled = self.items >= 0
        total = np.where(filled, of_item[self.items], 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / filled.sum(axis=1), dtype=np.float64)

    def exposure(self, n_items: int) -> NDArray[np.int64]:
        """Number of recommendations of each item of the catalogue."""
        return np.bincount(self.items[self.items >= 0], minlength=n_items)


def ndcg(hits: Hits) -> Doubles:
    r"""nDCG@N with gain 1 for a test item, per user.

    .. math:: \frac{\sum_{p=1}^N 1(\text{hit at } p) / \log_2(p + 1)}{\sum_{p=1}^{\min(N, |T_u|)} 1 / \log_2(p + 1)}

    Source: Järvelin and Kekäläinen, ACM TOIS 20(4), 2002, with binary gain.

    Examples
    --------
    >>> ndcg(Hits(np.array([[True, False], [False, True]]), np.array([1, 1]), np.zeros((2, 2), int))).round(4)
    array([1.    , 0.6309])
    """
    discount = 1.0 / np.log2(np.arange(2, hits.length + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(hits.hit @ discount / ideal[np.minimum(hits.relevant, hits.length)])


def recall(hits: Hits) -> Doubles:
    r"""Recall@N: the share of a user's test items that are in the list.

    .. math:: |R_u \cap T_u| / |T_u|

    A user with more than N test items cannot reach 1 (some authors divide by min(N, |T_u|) instead). Source: Herlocker
    et al., ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> recall(Hits(np.array([[True, False]]), np.array([4]), np.zeros((1, 2), int)))
    array([0.25])
    """
    return np.asarray(hits.hit.sum(axis=1) / hits.relevant)


def precision(hits: Hits) -> Doubles:
    r"""Precision@N: the share of the N places that hold a test item.

    .. math:: |R_u \cap T_u| / N

    Places that could not be filled count as misses. Source: Herlocker et al., ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> precision(Hits(np.array([[True, False]]), np.array([4]), np.zeros((1, 2), int)))
    array([0.5])
    """
    return np.asarray(hits.hit.mean(axis=1))


def hit_rate(hits: Hits) -> Doubles:
    r"""Hit rate@N: whether the list holds at least one test item.

    .. math:: 1(R_u \cap T_u \ne \emptyset)

    Source: Deshpande and Karypis, ACM TOIS 22(1), 2004.

    Examples
    --------
    >>> hit_rate(Hits(np.array([[True, True], [False, False]]), np.array([4, 1]), np.zeros((2, 2), int)))
    array([1., 0.])
    """
    return np.asarray(hits.hit.any(axis=1), dtype=np.float64)


def mrr(hits: Hits) -> Doubles:
    r"""Reciprocal rank of the first test item in the list, 0 if there is none; its mean over users is MRR@N.

    .. math:: 1 / \min\{p \le N : \text{hit at } p\}

    Source: Voorhees, TREC-8, 1999.

    Examples
    --------
    >>> mrr(Hits(np.array([[False, True], [False, False]]), np.array([4, 1]), np.zeros((2, 2), int)))
    array([0.5, 0. ])
    """
    first = hits.hit.argmax(axis=1)
    return np.where(hits.hit.any(axis=1), 1.0 / (first + 1.0), 0.0)


def average_precision(hits: Hits) -> Doubles:
    r"""Average precision@N; its mean over users is MAP@N.

    .. math:: \frac{1}{\min(N, |T_u|)} \sum_{p=1}^N 1(\text{hit at } p) \cdot \mathrm{precision@}p

    Source: Buckley and Voorhees, SIGIR 2000; cut at N and divided by the
    largest value that N places allow, so that 1 is possible.

    Examples
    --------
    >>> average_precision(Hits(np.array([[True, False, True]]), np.array([2]), np.zeros((1, 3), int))).round(4)
    array([0.8333])
    """
    precision_at = np.cumsum(hits.hit, axis=1) / np.arange(1, hits.length + 1)
    return np.asarray((hits.hit * precision_at).sum(axis=1) / np.minimum(hits.relevant, hits.length))


def popularity_bias(hits: Hits, popularity: NDArray[Any], own: NDArray[Any]) -> Doubles:
    r"""Relative difference in popularity of what is recommended and what the user met in training, per user.

    .. math:: \frac{\bar c(R_u) - \bar c(I_u)}{\bar c(I_u)}

    0 means lists as popular as the user's own history, 1 twice as popular, below 0 less popular. Source: Abdollahpouri
    et al., "The unfairness of popularity bias in recommendation", RMSE workshop, RecSys 2019 (their GAP, per user).
    ``popularity`` counts training interactions by item, ``own`` is the mean of it over what each user met.

    Examples
    --------
    >>> hits = Hits(np.ones((1, 2), bool), np.array([2]), np.array([[0, 1]]))
    >>> popularity_bias(hits, popularity=np.array([8, 2]), own=np.array([4.0]))
    array([0.25])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(hits.mean_over_list(popularity) / own - 1.0)


def coverage(exposure: NDArray[Any]) -> float:
    r"""Share of the catalogue that is recommended to at least one user.

    .. math:: |\cup_u R_u| / m

    ``exposure`` says how often each item of the catalogue is recommended. Source: Ge, Delgado-Battenfeld and
    Jannach, RecSys 2010.

    Examples
    --------
    >>> coverage(np.array([3, 0, 1, 0]))
    0.5
    """
    return float(np.count_nonzero(exposure) / max(1, len(exposure)))
