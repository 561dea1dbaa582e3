"""Tournaments: every item of a list against every other, for one user.

Nothing here needs an order to exist: a win count always does, a winner over all sometimes, and the smallest set that
beats every other item (the Smith set) always.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.memory import need
from sadrec._core.types import Doubles, Positions
from sadrec.ranking.parameters import Parameters, User, item_positions, user_vector

_BLOCK = 1024
"""Items of a block when wins are counted over more items than a matrix should hold."""


@dataclass(frozen=True, eq=False)
class Tournament:
    """Items and their margins against each other, for one user.

    Attributes
    ----------
    items
        Positions, or whatever labels the items: ids do.
    margins
        (items, items), anti-symmetric to the last bit: ``margins[i, j] > 0`` if i beats j, 0 for a tie.

    Examples
    --------
    >>> game = Tournament(np.array(["rock", "paper", "scissors", "air"]), np.array(
    ...     [[0.0, -1, 2, 1], [1, 0, -3, 1], [-2, 3, 0, 1], [-1, -1, -1, 0]]))
    >>> game
    Tournament of 4 items: no winner over all, 3 in the Smith set
    >>> game.wins()
    array([2., 2., 2., 0.])
    >>> game.smith_set()
    array(['rock', 'paper', 'scissors'], dtype='<U8')
    """

    items: NDArray[Any]
    margins: Doubles = field(repr=False)

    def __post_init__(self) -> None:
        n = len(self.items)
        if self.margins.shape != (n, n):
            raise ValueError(f"margins must have the shape {(n, n)}, one row per item, not {self.margins.shape}")
        if not np.array_equal(self.margins, -self.margins.T):
            raise ValueError("margins must be anti-symmetric: margins[i, j] == -margins[j, i], and finite")

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        winner = self.condorcet_winner()
        best = "no winner over all" if winner is None else f"{winner} beats all others"
        return f"Tournament of {len(self)} items: {best}, {len(self.smith_set())} in the Smith set"

    def wins(self) -> Doubles:
        """Count how many of the others each item beats (Copeland; the paper's M1); a tie is half a win."""
        return np.asarray((self.margins > 0).sum(1) + ((self.margins == 0).sum(1) - 1) / 2)

    def mean_margins(self) -> Doubles:
        """Average the margins of each item over the list, itself included."""
        return np.asarray(self.margins.sum(1) / max(1, len(self)))

    def condorcet_winner(self) -> Any | None:
        """Return the item that beats every other one, or None if there is none."""
        winners = np.flatnonzero((self.margins > 0).sum(1) == len(self) - 1)
        return self.items[winners[0]] if winners.size else None

    def smith_set(self) -> NDArray[Any]:
        """Return the fewest items that each beat every item outside; in the order of the list."""
        parts = dominance_components(self.margins)
        return self.items[parts[0]] if parts else self.items

    def components(self) -> list[NDArray[Any]]:
        """Split the items so that everything in one part beats everything in the later parts, as finely as possible.

        The first part is the Smith set. A part of several items holds a cycle or a tie; without these, every part is
        one item and the parts are the ranking.
        """
        return [self.items[part] for part in dominance_components(self.margins)]


def tournament(
    parameters: Parameters, user: User, items: ArrayLike | None, labels: ArrayLike | None = None
) -> Tournament:
    """Let items play each other: one matrix product in double precision.

    With ``A = (H * xi) T'`` the margins are ``A - A'`` (for BPR, differences of scores), which is anti-symmetric to
    the last bit. A margin that the rounding of A cannot tell from 0 is 0: a tie.

    >>> rock_paper_scissors = Parameters(np.ones((1, 3)), np.eye(3), np.roll(np.eye(3), -1, axis=0))
    >>> tournament(rock_paper_scissors, 0, None).margins
    array([[ 0., -1.,  1.],
           [ 1.,  0., -1.],
           [-1.,  1.,  0.]])
    """
    chosen = item_positions(parameters, items)
    if np.unique(chosen).size != chosen.size:
        raise ValueError("items holds the same item twice, but an item cannot play itself: give each once")
    names = chosen if labels is None else np.asarray(labels)
    need(24 * chosen.size**2, f"a tournament of {chosen.size:,} items", "name fewer items")
    return Tournament(names, _Players(parameters, user, chosen).square(slice(None), slice(None)))


def count_wins(parameters: Parameters, user: User, items: ArrayLike | None) -> Doubles:
    """Count how many of the other items each item beats, half for a tie, in bounded memory for any number of items."""
    chosen = item_positions(parameters, items)
    players = _Players(parameters, user, chosen)
    if players.scores is not None:
        ordered = np.sort(players.scores)
        below, up_to = (np.searchsorted(ordered, players.scores, side) for side in ("left", "right"))
        return np.asarray((below + up_to - 1) / 2)
    twice = np.zeros(chosen.size)
    blocks = [slice(start, start + _BLOCK) for start in range(0, chosen.size, _BLOCK)]
    for number, rows in enumerate(blocks):
        for columns in blocks[number:]:
            # Each pair is computed once, so that both sides agree on who won.
            outcome = np.sign(players.square(rows, columns))
            twice[rows] += outcome.sum(1)
            if columns != rows:
                twice[columns] -= outcome.sum(0)
    return np.asarray((twice + chosen.size - 1) / 2)


def share_beaten(parameters: Parameters, user: User, items: ArrayLike | None, rivals: ArrayLike) -> Doubles:
    """Compute the share of some rivals that each item beats, half for a tie (M2 for the user's liked items)."""
    chosen, opponents = item_positions(parameters, items), item_positions(parameters, rivals, "rivals")
    if not opponents.size:
        raise ValueError("rivals is empty, but a share of them needs at least one")
    players = _Players(parameters, user, np.concatenate([chosen, opponents]))
    answer = np.empty(chosen.size)
    against = slice(chosen.size, None)
    for start in range(0, chosen.size, _BLOCK):
        rows = slice(start, min(start + _BLOCK, chosen.size))
        answer[rows] = (np.sign(players.square(rows, against)).mean(1) + 1) / 2
    return answer


def dominance_components(margins: Doubles) -> list[Positions]:
    """Split positions so that everything in one part beats everything in the later ones, as finely as possible."""
    size = len(margins)
    if not size:
        return []
    # Ordered by wins, a part ends where those before beat all those after.
    wins = (margins > 0).sum(1) - (margins < 0).sum(1)
    order = np.argsort(-wins, kind="stable")
    beaten = margins[np.ix_(order, order)] > 0
    last_unbeaten = size - 1 - np.argmax(~beaten[:, ::-1], axis=1)
    ends = np.flatnonzero(np.maximum.accumulate(last_unbeaten) == np.arange(size)) + 1
    return [np.sort(part) for part in np.split(order, ends[:-1])]


def strong_components(beats: NDArray[np.bool_]) -> Positions:
    """Number the strongly connected components of who-beats-whom: same number, same component."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(csr_matrix(beats), connection="strong")[1], np.int64)


class _Players:
    """The factors of some items in double precision, to let them play each other."""

    def __init__(self, parameters: Parameters, user: User, items: Positions) -> None:
        xi = parameters.extend_users(user_vector(parameters, user)[None, :])
        eta, self.tau = (side.astype(np.float64) for side in parameters.extend_items(items))
        self.strength = eta * xi
        self.scores = self.strength.sum(axis=1) if parameters.rival_factors is None else None
        self.size = np.abs(self.strength).sum(axis=1)
        self.reach = np.abs(self.tau).max(axis=1, initial=0.0)
        self.rounding = (xi.size + 2) * float(np.finfo(np.float64).eps)

    def square(self, rows: slice, columns: slice) -> Doubles:
        """Compute the margins of some items against others."""
        if self.scores is not None:
            return np.asarray(self.scores[rows, None] - self.scores[None, columns])
        forth = self.strength[rows] @ self.tau[columns].T
        same = rows == columns
        x = forth - (forth.T if same else (self.strength[columns] @ self.tau[rows].T).T)
        noise = self.size[rows, None] * self.reach[None, columns]
        noise = noise + self.reach[rows, None] * self.size[None, columns]
        x[np.abs(x) <= self.rounding * noise] = 0.0
        return np.asarray(x)
