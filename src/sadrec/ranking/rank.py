"""Rankings of items for a user by five methods, also where preferences have no order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.types import METHODS, Doubles, Method, SlateMethod
from sadrec._core.words import one_line, titled
from sadrec.ranking.belief import Belief
from sadrec.ranking.pairs import sigmoid
from sadrec.ranking.parameters import User, item_positions, mean_margins
from sadrec.ranking.tournament import Tournament, count_wins, dominance_components, share_beaten

LONGEST = 2000
"""The largest number of items for methods that solve a system of equations."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items in the order of a method, best first, with the scores that the method gave them.

    Examples
    --------
    >>> print(Ranking(np.array(["tea", "coffee"]), np.array([1.25, -1.25]), "margin"))
    Ranking of 2 items by margin
      1.  tea      1.25
      2.  coffee  -1.25
    """

    items: NDArray[Any]
    scores: Doubles
    method: str

    def named(self, titles: Mapping[Any, str]) -> "Ranking":
        """Return the same with titles (:class:`sadrec.Items`, or a mapping) in place of ids."""
        return replace(self, items=titled(self.items, titles))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items, best first."""
        return iter(self.items)

    def __repr__(self) -> str:
        shown = 20
        names = [one_line(item) for item in self.items[:shown]]
        width = max((len(name) for name in names), default=0)
        numbers = [f"{score: .4g}" for score in self.scores[:shown]]
        lines = [f"Ranking of {len(self)} item{'s' * (len(self) != 1)} by {self.method}"]
        pairs = enumerate(zip(names, numbers, strict=True), start=1)
        lines += [f"{place:3d}.  {name:<{width}} {number}" for place, (name, number) in pairs]
        if len(self) > shown:
            lines.append(f"  ... and {len(self) - shown} more")
        return "\n".join(lines)


def rank(
    belief: Belief,
    user: User,
    items: ArrayLike | None,
    method: Method = "margin",
    *,
    liked: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Ranking:
    """Order items for a user; without rival factors (BPR) each method gives the order of the scores.

    - ``"margin"``: the mean margin against ``reference``, by default the catalogue. It has no ties and costs one inner
      product per item.
    - ``"wins"``: how many of ``items`` it beats, half for a tie (Copeland; the paper's M1).
    - ``"liked"``: the share of ``liked`` that it beats, half for a tie (the paper's M2).
    - ``"markov"``, ``"nash"``: :func:`~sadrec.ranking.rank.rank_centrality` and
      :func:`~sadrec.ranking.rank.maximal_lottery` among ``items``; for short lists.

    Items that score alike come in the order of a second score - for ``"wins"`` the mean margin among ``items``, for
    ``"liked"`` that against ``liked``, for ``"markov"`` and ``"nash"`` the expected margin against an item drawn with
    the weights - and, after that, in the order they were given in.

    >>> from sadrec.ranking import Parameters
    >>> from sadrec.ranking.belief import Point
    >>> model = Point(Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]])))
    >>> rank(model, 0, [0, 1, 2], "wins")
    Ranking of 3 items by wins
      1.  2  2
      2.  0  1
      3.  1  0
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    chosen, parameters = item_positions(belief, items), belief.parameters
    if np.unique(chosen).size != chosen.size:
        raise ValueError("items holds the same item twice: give each item once")
    names = chosen if labels is None else np.asarray(labels)
    if len(names) != chosen.size:
        raise ValueError(f"labels must name each of the {chosen.size} items, but there are {len(names)}")
    if method in ("markov", "nash") and chosen.size > LONGEST:
        raise ValueError(
            f"method {method!r} is for short lists, of at most {LONGEST} items, not {chosen.size}: "
            "take the best by 'margin' first"
        )
    if method == "margin" and reference is None:
        then = mean_margins(parameters, user, chosen) if not belief.has_pairs else belief.scores(user)[0, chosen]
        return _ranking(names, then, then, method)
    if method == "margin" or method == "liked":
        rivals = _some(liked) if method == "liked" else item_positions(belief, reference, "reference")
        if belief.has_pairs:
            return rank_margins(belief.margins(user, chosen, rivals), method, names)
        then = mean_margins(parameters, user, chosen, rivals)
        score = then if method == "margin" else share_beaten(parameters, user, chosen, rivals)
        return _ranking(names, score, then, method)
    if method == "wins" and not belief.has_pairs:  # a tournament of the whole catalogue may be too large
        then = mean_margins(parameters, user, chosen, chosen) if chosen.size else np.empty(0)
        return _ranking(names, count_wins(parameters, user, chosen), then, method)
    return rank_tournament(belief.tournament(user, chosen, names), method)


def _some(liked: ArrayLike | None) -> NDArray[Any]:
    """Return the items that a user liked, of which there must be one at least."""
    rivals = np.empty(0) if liked is None else np.asarray(liked)
    if not rivals.size:
        raise ValueError(
            "method 'liked' compares with the items the user liked, but none are known; "
            "give some as liked, or choose the method 'margin'"
        )
    return rivals


def rank_tournament(game: Tournament, method: SlateMethod = "wins") -> Ranking:
    """Order the items of a tournament, "margin" being the mean margin among them; see :func:`rank`."""
    if method in ("margin", "wins"):
        then = game.mean_margins()
        score = game.wins() if method == "wins" else then
    elif method in ("markov", "nash"):
        score = rank_centrality(game.margins) if method == "markov" else maximal_lottery(game.margins)
        then = game.margins @ score
    else:
        raise ValueError(f"method must be 'margin', 'wins', 'markov' or 'nash' for a tournament, not {method!r}")
    return _ranking(game.items, score, then, method)


def rank_margins(margins: Doubles, method: Method, labels: ArrayLike) -> Ranking:
    """Order items by given margins, (items, rivals); see :func:`rank`.

    They are margins over the reference for ``"margin"``, over the liked items for ``"liked"``, else over the items
    themselves.

    >>> rank_margins(np.array([[0.0, -1.0], [1.0, 0.0]]), "margin", ["a", "b"])
    Ranking of 2 items by margin
      1.  b  0.5
      2.  a -0.5
    """
    names = np.asarray(labels)
    if method in ("wins", "markov", "nash"):
        return rank_tournament(Tournament(names, (margins - margins.T) / 2), method)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    mean = margins.mean(axis=1)
    score = mean if method == "margin" else (np.sign(margins).mean(axis=1) + 1) / 2
    return _ranking(names, score, mean, method)


def _ranking(names: NDArray[Any], score: Doubles, then: Doubles, method: str) -> Ranking:
    """Return items by falling score, then by the second score, then as they are."""
    order = np.lexsort((-then, -score))
    return Ranking(names[order], score[order], method)


_STEPS, _GAP = 200, 1e-13
"""Newton steps at most, and what a game may be lost by, relative to the largest margin."""


def rank_centrality(margins: Doubles) -> Doubles:
    """Compute the stationary distribution of a walk that moves from an item to a rival as often as the rival wins.

    From item i the walk picks one of the other n - 1 items at random and moves there with the probability
    ``sigmoid(x_ji)`` that it is preferred. Where the margins are differences of scores (BPR) the distribution is the
    softmax of the scores (Negahban, Oh and Shah, 2017). Each weight has full relative precision: nothing is subtracted.

    >>> scores = np.log([1.0, 2.0, 5.0])
    >>> rank_centrality(scores[:, None] - scores[None, :])
    array([0.125, 0.25 , 0.625])
    """
    size = len(margins)
    if not size:
        return np.zeros(0)
    # rate[i, j]: how readily the walk goes from i to j. The diagonal plays no part.
    rate = sigmoid(margins.T)
    # Elimination of Grassmann, Taksar and Heyman: items leave the chain one after the other.
    for last in range(size - 1, 0, -1):
        out = rate[last, :last].sum()
        rate[:last, last] /= max(out, np.finfo(np.float64).tiny)
        rate[:last, :last] += np.outer(rate[:last, last], rate[last, :last])
    weights = np.zeros(size)
    weights[0] = 1.0
    for last in range(1, size):
        weights[last] = weights[:last] @ rate[:last, last]
        weights[: last + 1] /= weights[: last + 1].sum()
    return weights


def maximal_lottery(margins: Doubles) -> Doubles:
    """Compute how often to choose each item so that no item beats the choice on average: the Nash average.

    Weights p >= 0 with ``sum p = 1`` and ``X p <= 0`` always exist: they are the optimal strategy of the symmetric game
    X. Nearly always they are unique; otherwise the centre of all such weights is returned, so that copies of an item
    share alike. An item that beats all others gets 1. Items that each of the Smith set beats have no weight, so the
    game is solved for the Smith set alone.

    >>> maximal_lottery(np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]])).round(4)
    array([0.5   , 0.3333, 0.1667])
    """
    weights = np.zeros(len(margins))
    for best in dominance_components(margins)[:1]:
        weights[best] = _centre(margins[np.ix_(best, best)]) if best.size > 1 else 1.0
    return weights


def _centre(margins: Doubles) -> Doubles:
    """Return the analytic centre of the optimal strategies of a game of some items.

    The linear program ``min theta`` subject to ``s = theta - X p >= 0`` is its own dual. Newton's method follows the
    central path ``p_i s_i = mu`` down to ``mu = 0`` (Goldman and Tucker: of p_i and s_i exactly one is positive there).
    """
    size = len(margins)
    x = margins / max(float(np.abs(margins).max()), np.finfo(np.float64).tiny)
    p = np.full(size, 1.0 / size)
    theta = 1.0 + float((x @ p).max())
    # Towards the end the path is only centred: the last steps aim at where they are.
    aims = [0.0] * _STEPS + [1.0] * 2
    for aim in aims:
        if aim == 0.0 and theta < _GAP:
            continue
        slack = theta - x @ p
        mu = theta / size
        # Away from the path, first return to it.
        aim = max(aim, 0.1 if (p * slack).min() > 0.1 * mu else 0.8)
        system = -x
        system[np.diag_indices(size)] += slack / p
        # (slack / p) dp - X dp + dtheta = (aim mu - p slack) / p,  sum dp = 0
        solved = np.linalg.solve(system, np.stack([aim * mu / p - slack, np.ones(size)], axis=1))
        d_theta = float(solved[:, 0].sum() / solved[:, 1].sum())
        d_p = solved[:, 0] - solved[:, 1] * d_theta
        d_slack = d_theta - x @ d_p
        shrinking = max(float((-d_p / p).max()), float((-d_slack / slack).max()))
        step = 0.95 / max(shrinking, 0.95)
        p = p + step * d_p
        p /= p.sum()
        theta = theta + step * d_theta
    p[p < theta - x @ p] = 0.0
    p /= p.sum()
    # Between the items that are left the margins even out: what the path has left of that goes by the smallest change.
    chosen = p > 0
    equations = np.vstack([x[np.ix_(chosen, chosen)], np.ones(np.count_nonzero(chosen))])
    change, *_ = np.linalg.lstsq(equations, [0.0] * (len(equations) - 1) + [1.0] - equations @ p[chosen], rcond=1e-9)
    ended = p.copy()
    ended[chosen] += change
    ended /= ended.sum()
    # Where an item went whose weight is too small, these equations have no solution.
    nearer = (ended[chosen] > 0).all() and (x @ ended).max() <= (x @ p).max()
    return np.asarray(ended if nearer else p)
