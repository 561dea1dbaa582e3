"""Putting items in an order for a user, in five ways, when the user's preferences need not have one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._types import Doubles
from sadrec.ranking._arguments import Indices, User, item_positions
from sadrec.ranking.lottery import maximal_lottery, rank_centrality
from sadrec.ranking.parameters import Parameters
from sadrec.ranking.tournament import Tournament, count_wins, share_beaten, tournament
from sadrec.ranking.vectors import mean_margins

Method = Literal["margin", "wins", "liked", "markov", "nash"]
METHODS: tuple[str, ...] = get_args(Method)
"""The names of the methods of :func:`rank`."""

LONGEST = 2000
"""How many items the methods that solve a system of equations take."""


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

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items, best first."""
        return iter(self.items)

    def __repr__(self) -> str:
        shown = 20
        names = [str(item) for item in self.items[:shown]]
        width = max((len(name) for name in names), default=0)
        numbers = [f"{score: .4g}" for score in self.scores[:shown]]
        lines = [f"Ranking of {len(self)} item{'s' * (len(self) != 1)} by {self.method}"]
        pairs = enumerate(zip(names, numbers, strict=True), start=1)
        lines += [f"{place:3d}.  {name:<{width}} {number}" for place, (name, number) in pairs]
        if len(self) > shown:
            lines.append(f"  ... and {len(self) - shown} more")
        return "\n".join(lines)


def rank(
    parameters: Parameters,
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
    - ``"markov"``, ``"nash"``: :func:`~sadrec.ranking.lottery.rank_centrality` and
      :func:`~sadrec.ranking.lottery.maximal_lottery` among ``items``; for short lists.

    Items that score alike come in the order of a second score - for ``"wins"`` the mean margin among ``items``, for
    ``"liked"`` that against ``liked``, for ``"markov"`` and ``"nash"`` the expected margin against an item drawn with
    the weights - and, after that, in the order they were given in.

    >>> model = Parameters(np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> rank(model, 0, [0, 1, 2], "wins")
    Ranking of 3 items by wins
      1.  2  2
      2.  0  1
      3.  1  0
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {method!r}")
    chosen = item_positions(parameters, items)
    if np.unique(chosen).size != chosen.size:
        raise ValueError("items holds the same item twice: give each item once")
    names = chosen if labels is None else np.asarray(labels)
    if len(names) != chosen.size:
        raise ValueError(f"labels must name each of the {chosen.size} items, but there are {len(names)}")
    if method == "margin":
        score = mean_margins(parameters, user, chosen, reference)
        order = _order(score)
    elif method == "wins":
        score = count_wins(parameters, user, chosen)
        order = _order(score, mean_margins(parameters, user, chosen, chosen) if chosen.size else score)
    elif method == "liked":
        rivals = np.empty(0) if liked is None else np.asarray(liked)
        if not rivals.size:
            raise ValueError(
                "method 'liked' compares with the items the user liked, but none are known; "
                "give some as liked, or choose the method 'margin'"
            )
        score = share_beaten(parameters, user, chosen, rivals)
        order = _order(score, mean_margins(parameters, user, chosen, rivals))
    else:
        if chosen.size > LONGEST:
            raise ValueError(
                f"method {method!r} is for short lists, of at most {LONGEST} items, not {chosen.size}: "
                "take the best by 'margin' first"
            )
        return rank_tournament(tournament(parameters, user, chosen, names), method)
    return Ranking(names[order], score[order], method)


def rank_tournament(game: Tournament, method: Literal["wins", "markov", "nash"] = "wins") -> Ranking:
    """Order the items of a tournament; see :func:`rank`."""
    if method == "wins":
        score, then = game.wins(), game.mean_margins()
    elif method == "markov":
        score = rank_centrality(game.margins)
        then = game.margins @ score
    elif method == "nash":
        score = maximal_lottery(game.margins)
        then = game.margins @ score
    else:
        raise ValueError(f"method must be 'wins', 'markov' or 'nash' for a tournament, not {method!r}")
    order = _order(score, then)
    return Ranking(game.items[order], score[order], method)


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
    order = _order(score, mean)
    return Ranking(names[order], score[order], method)


def _order(score: Doubles, then: Doubles | None = None) -> Indices:
    """Return positions by falling score, then by the second score, then as they are."""
    return np.lexsort((-score,) if then is None else (-then, -score))
