"""Comparisons of simulated worlds whose truth is known, each hard for a model in a way of its own.

Every world is a function of a random generator that returns comparisons to learn from and comparisons to ask about.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sadrec import Comparisons

Whole = NDArray[np.int64]
Margins = Callable[[Whole, Whole, Whole], Any]
Draw = Callable[[int], tuple[Whole, Whole, Whole]]
Rng = np.random.Generator

ASKED = 4000


def _answers(rng: Rng, rows: tuple[Whole, Whole, Whole], margins: Margins, users: int, items: int) -> Comparisons:
    """Let users answer which of two items is better."""
    user, first, second = rows
    wins = rng.random(len(user)) < expit(margins(user, first, second))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    return Comparisons.from_indices(user, winner, loser, users=range(users), items=range(items))


def _pairs(rng: Rng, users: int, items: int, share: Any = None) -> Draw:
    """Draw users and pairs of items at random, items by their shares."""

    def draw(count: int) -> tuple[Whole, Whole, Whole]:
        first = rng.choice(items, size=4 * count, p=share)
        second = rng.choice(items, size=4 * count, p=share)
        apart = np.flatnonzero(first != second)[:count]
        return rng.integers(users, size=len(apart)), first[apart], second[apart]

    return draw


def _world(
    rng: Rng, margins: Margins, count: int, *, users: int = 1, items: int = 100, share: Any = None
) -> tuple[Comparisons, Comparisons]:
    draw = _pairs(rng, users, items, share)
    train, asked = (_answers(rng, draw(rows), margins, users, items) for rows in (count, ASKED))
    return train, asked


def _scores(b: Any) -> Margins:
    return lambda user, first, second: b[first] - b[second]


def _plain(spread: float, count: int, items: int, users: int = 1) -> Callable[[Rng], Any]:
    """Bradley-Terry."""
    return lambda rng: _world(rng, _scores(spread * rng.standard_normal(items)), count, items=items, users=users)


def _heavy(slope: float) -> Callable[[Rng], Any]:
    """Few items meet often, most hardly ever; those who meet often are better by ``slope``."""

    def make(rng: Rng) -> Any:
        share = 1.0 / np.arange(1, 401)
        b = rng.standard_normal(400) + slope * (np.log(share) - np.log(share).mean())
        return _world(rng, _scores(b), 4000, items=400, share=share / share.sum())

    return make


def _tastes(count: int, users: int, items: int, own: float, common: float = 1.0) -> Callable[[Rng], Any]:
    """Judges have tastes of two dimensions beside scores in common."""

    def make(rng: Rng) -> Any:
        b, eta = common * rng.standard_normal(items), rng.standard_normal((items, 2))
        xi = own * rng.standard_normal((users, 2))

        def margins(user: Whole, first: Whole, second: Whole) -> Any:
            return b[first] - b[second] + np.sum(xi[user] * (eta[first] - eta[second]), axis=1)

        return _world(rng, margins, count, users=users, items=items)

    return make


def _cyclic(skew: float, count: int, items: int, spread: float = 0.5, users: int = 1) -> Callable[[Rng], Any]:
    """Scores, and a skew part of rank two."""

    def make(rng: Rng) -> Any:
        b, c = spread * rng.standard_normal(items), rng.standard_normal((items, 2))

        def margins(user: Whole, first: Whole, second: Whole) -> Any:
            return b[first] - b[second] + skew * (c[first, 0] * c[second, 1] - c[second, 0] * c[first, 1])

        return _world(rng, margins, count, items=items, users=users)

    return make


def _series(known: bool) -> Callable[[Rng], Any]:
    """Few pairings, each with a margin of its own, in series of 1 to 30 games; ``known``: asked about the same ones."""

    def make(rng: Rng) -> Any:
        items = 200
        b = 0.7 * rng.standard_normal(items)
        own = np.triu(1.5 * rng.standard_normal((items, items)), 1)
        own -= own.T
        _, first, second = _pairs(rng, 1, items)(1200)
        games = np.minimum(rng.geometric(0.25, size=600), 30)

        def margins(user: Whole, i: Whole, j: Whole) -> Any:
            return b[i] - b[j] + own[i, j]

        at = np.repeat(np.arange(600), games)
        asked = rng.integers(600, size=ASKED) if known else rng.integers(600, 1200, size=ASKED)
        train, test = (
            _answers(rng, (np.zeros(len(rows), np.int64), first[rows], second[rows]), margins, 1, items)
            for rows in (at, asked)
        )
        return train, test

    return make


def _matched(rng: Rng) -> Any:
    """Items meet others of like strength only; asked about any."""
    items = 300
    b = np.sort(1.5 * rng.standard_normal(items))
    first = rng.integers(items - 10, size=3000)
    rows = np.zeros(3000, np.int64), first, first + rng.integers(1, 10, size=3000)
    asked = _pairs(rng, 1, items)(ASKED)
    return tuple(_answers(rng, part, _scores(b), 1, items) for part in (rows, asked))


def _opposed(rng: Rng) -> Any:
    """Half of the judges like what the others dislike."""
    b, sign = rng.standard_normal(50), np.where(np.arange(100) < 50, 1.0, -1.0)
    return _world(rng, lambda user, i, j: sign[user] * (b[i] - b[j]), 3000, users=100, items=50)


def _lapses(rng: Rng) -> Any:
    """Sharp scores, and one answer in eight by a coin."""
    b = 4 * rng.standard_normal(80)

    def margins(user: Whole, i: Whole, j: Whole) -> Any:
        p = 1 / 16 + 7 / 8 * expit(b[i] - b[j])
        return np.log(p / (1 - p))

    return _world(rng, margins, 1500, items=80)


def _seasons(rng: Rng) -> Any:
    """The judge is a season; scores drift from one to the next."""
    b = 0.7 * rng.standard_normal((1, 30)) + np.cumsum(0.3 * rng.standard_normal((25, 30)), axis=0)
    return _world(rng, lambda user, i, j: b[user, i] - b[user, j], 3000, users=25, items=30)


def _types(rng: Rng) -> Any:
    """Rock, paper and scissors of thirty kinds each, hardly ever in doubt."""
    kind = rng.integers(3, size=90)
    return _world(rng, lambda user, i, j: 4.0 * np.array([0, 1, -1])[(kind[i] - kind[j]) % 3], 3000, items=90)


WORLDS: dict[str, Callable[[Rng], Any]] = {
    "scores, 3 per item": _plain(1.0, 750, 500),
    "scores, 1 per item": _plain(1.0, 1000, 2000),
    "scores, wide, 1 per item": _plain(2.0, 1000, 2000),
    "scores, 4 per item, many judges": _plain(1.0, 1500, 750, 600),
    "scores, 120 rows": _plain(1.0, 120, 12),
    "scores, many rows": _plain(0.7, 20000, 30),
    "faint scores": _plain(0.1, 3000, 200),
    "certain scores": _plain(8.0, 1500, 100),
    "coin": _plain(0.0, 2000, 100),
    "coin, many judges": _plain(0.0, 2000, 100, 300),
    "coin, 1 per item": _plain(0.0, 700, 1000),
    "few items meet often": _heavy(0.0),
    "few meet often, better": _heavy(0.4),
    "few meet often, worse": _heavy(-0.4),
    "judges of 2 answers": _tastes(4000, 2000, 100, 0.0),
    "judges of 2 answers, tastes": _tastes(4000, 2000, 100, 0.7),
    "judges of 20 answers, tastes": _tastes(6000, 300, 40, 1.0, 0.5),
    "judges of 200 answers, tastes": _tastes(4000, 20, 40, 1.0, 0.5),
    "tastes, items of 2 answers": _tastes(1000, 50, 1000, 1.0),
    "opposed judges": _opposed,
    "seasons": _seasons,
    "cyclic": _cyclic(1.0, 6000, 60),
    "cyclic, 10 per item": _cyclic(1.0, 600, 120),
    "cyclic, 3 per item": _cyclic(1.0, 600, 400),
    "cyclic, many judges": _cyclic(1.0, 4000, 60, users=800),
    "faintly cyclic": _cyclic(0.3, 4000, 60),
    "types, certain": _types,
    "series, same pairings": _series(True),
    "series, new pairings": _series(False),
    "like meets like": _matched,
    "lapses": _lapses,
}
