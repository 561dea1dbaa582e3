"""Comparisons as people have them: counted or not, in any order, few or many, with and without cycles.

Each trial draws a small world and asks a fit of its comparisons for what docs/reliability.md promises: a weight of k is
k rows, what nobody has seen is less certain than if it had been seen, the answers about a pair agree with each other,
and a cycle is no more probable than its least probable step.
"""

from pathlib import Path
from typing import Any

import numpy as np

from campaigns._trials import Campaign, Outcome, Random, main
from sadrec import BPR, SAD, Comparisons

GAMES = 60
"""Comparisons that are added to a pair that never met, with the results that the model expects."""


ENOUGH = 10
"""Pairs that met from which the spread of single pairs can be told: with fewer, one more pair changes it much."""


def world(rng: Random) -> tuple[Any, ...]:
    """Return users, winners and losers of a random world, and the numbers of users and items."""
    users, items, count = int(rng.integers(1, 5)), int(rng.integers(3, 25)), int(np.exp(rng.uniform(0, 7)))
    scores = rng.standard_normal((1, items)) + rng.choice([0.0, 0.7]) * rng.standard_normal((users, items))
    a, b = rng.choice([0.0, 0.5, 2.0]) * rng.standard_normal((2, items))
    allowed = np.stack(np.triu_indices(items, 1))
    allowed = rng.permutation(allowed, axis=1)[:, : max(int(allowed.shape[1] * rng.uniform(0.2, 1.0)), 1)]
    user, (first, second) = rng.integers(users, size=count), allowed[:, rng.integers(allowed.shape[1], size=count)]
    x = scores[user, first] - scores[user, second] + a[first] * b[second] - a[second] * b[first]
    won = rng.random(count) < 1 / (1 + np.exp(-x))
    return user, np.where(won, first, second), np.where(won, second, first), users, items


def fitted(kind: Any, rows: Any, users: int, items: int, weight: Any = None) -> Any:
    """Return a fit to comparisons."""
    ids = {"users": np.arange(users), "items": np.arange(items)}
    return kind(num_threads=1).fit(Comparisons.from_indices(*rows, weight=weight, **ids), show_progress=False)


def prepare(folder: Path) -> None:
    """Have every kernel compiled."""
    for seed in range(4):
        *rows, users, items = world(np.random.default_rng(seed))
        fitted(SAD, rows, users, items)


def trial(subject: None, rng: Random, folder: Path) -> Outcome:
    """Fit a world and ask."""
    *rows, users, items = world(rng)
    kind = SAD if rng.random() < 0.8 else BPR
    model = fitted(kind, rows, users, items)
    user = int(rng.integers(users))
    pairs = user, *np.triu_indices(items, 1)
    x, p, deviation = model.preference(*pairs), model.probability(*pairs), model.deviation(*pairs)
    about = f"{kind.__name__}, {users} users, {items} items, {len(rows[0])} comparisons"
    # counted, in another order, in halves
    triples, times = np.unique(np.stack(rows), axis=1, return_counts=True)
    order = rng.permutation(triples.shape[1])
    counted = fitted(kind, triples[:, order], users, items, times[order])
    twice = np.concatenate([order, order])
    halves = fitted(kind, triples[:, twice], users, items, times[twice] / 2)
    if not np.array_equal(counted.preference(*pairs), x) or not np.array_equal(counted.deviation(*pairs), deviation):
        return Outcome("weights that are no counts", about)
    if not np.allclose(halves.preference(*pairs), x, atol=1e-5):
        return Outcome("weights that are no counts", f"{about}, in halves")
    if deviation.min() <= 0:
        return Outcome("certain without evidence", about)
    if not np.allclose(p, 1 / (1 + np.exp(-x / np.sqrt(1 + np.pi * deviation**2 / 8))), atol=1e-5):
        return Outcome("answers that contradict each other", about)
    met = np.zeros((items, items), bool)
    met[rows[1], rows[2]] = met[rows[2], rows[1]] = True
    unseen = np.argwhere(np.triu(~met, 1))
    if len(unseen) and kind is SAD and np.count_nonzero(np.triu(met)) >= ENOUGH:
        first, second = unseen[rng.integers(len(unseen))]
        wins = np.arange(GAMES) < GAMES * model.probability(user, first, second)  # as the model expects
        sides = np.where(wins, first, second), np.where(wins, second, first)
        longer = [np.concatenate([side, new]) for side, new in zip(rows, (np.full(GAMES, user), *sides), strict=True)]
        seen = fitted(kind, longer, users, items)
        # Sixty wins of sixty say little of a margin of ten, and every scale is learnt anew.
        if seen.deviation(user, first, second) >= 1.05 * model.deviation(user, first, second):
            return Outcome("certain without evidence", f"{about}, items {first} and {second}")
    for cycle in model.cycles(user):
        step = cycle.margins / model.deviation(user, cycle.path, np.roll(cycle.path, -1))
        least = float(0.5 * (1 + np.tanh(0.7988 * step * (1 + 0.04417 * step**2))).min())  # the normal integral
        if cycle.probability is None or cycle.probability > least + 0.04:
            return Outcome("cycles too probable", f"{about}: {cycle.probability} with a step of {least:.3f}")
    return Outcome("as promised")


CAMPAIGN = Campaign(
    unit="fits of comparisons",
    kept=("as promised",),
    broken=(
        "weights that are no counts",
        "certain without evidence",
        "answers that contradict each other",
        "cycles too probable",
    ),
    prepare=prepare,
    trial=trial,
    seconds=60,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=300)
