"""How long one answer takes: ``recommend`` beside a NumPy product and partition, and a visitor's fold-in.

    python benchmarks/latency.py --items 3706,100000
    python benchmarks/latency.py --cpu                       # on a machine that others use: time of the processor alone

One thread, random models of the size of MovieLens 1M's (k = 64). ``recommend`` is compared, in the same turns, with the
least that NumPy needs for the same list: a product, a mask of what was seen, a partition and a sort. Visitors have 1 to
20 likes, and ask models trained in two ways: pairwise and with the softmax.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sadrec import SAD, Interactions
from sadrec.ranking.fold_in import fold_in
from sadrec.ranking.parameters import mean_margins

FACTORS, USERS, SEEN, N = 64, 2000, 100, 10
CLOCK = [time.perf_counter]


def random_model(items: int, seed: int = 0) -> SAD:
    """Make a model with a bias and rival factors, whose users have seen some items."""
    rng = np.random.default_rng(seed)
    factors = [rng.normal(0, 0.3, (count, FACTORS)).astype(np.float32) for count in (USERS, items)]
    rivals = np.abs(rng.normal(1, 0.1, (items, FACTORS))).astype(np.float32)
    bias = rng.normal(0, 0.5, items).astype(np.float32)
    columns = np.concatenate([np.sort(rng.choice(items, SEEN, replace=False)) for _ in range(USERS)])
    seen = sp.csr_matrix(
        (np.ones(columns.size, np.float32), columns, np.arange(0, columns.size + 1, SEEN)), shape=(USERS, items)
    )
    model = SAD.from_factors(*factors, rivals, bias, seen=seen)
    model.num_threads = 1
    return model


def numpy_answer(model: SAD) -> Callable[[int], np.ndarray]:
    """Return the least that NumPy does for the best N new items of a user."""
    vectors, users, seen = model.item_vectors(), model.user_vectors(), model.state.seen

    def answer(user: int) -> np.ndarray:
        scores = vectors @ users[user]
        scores[seen.indices[seen.indptr[user] : seen.indptr[user + 1]]] = -np.inf
        best = np.argpartition(-scores, N)[:N]
        return best[np.argsort(-scores[best])]

    return answer


def seconds(call: Callable[[int], object], number: int) -> np.ndarray:
    """Return how long each of some calls takes."""
    seconds = np.empty(number)
    for turn in range(number):
        began = CLOCK[0]()
        call(turn)
        seconds[turn] = CLOCK[0]() - began
    return seconds


def compare_recommend(items: int, number: int) -> None:
    """Print how long ``recommend`` takes beside NumPy."""
    model = random_model(items)
    plain = numpy_answer(model)
    for user in range(20):
        np.testing.assert_array_equal(model.recommend(user, N=N)[0], plain(user))
    ours, theirs = [], []
    for turn in range(number):
        user = turn * 37 % USERS
        theirs.append(seconds(lambda _, user=user: plain(user), 1)[0])
        ours.append(seconds(lambda _, user=user: model.recommend(user, N=N), 1)[0])
    a, b = (1e6 * np.array(side) for side in (ours, theirs))
    print(
        f"recommend       {items:7,} items  median {np.median(a):7.0f} us  p99 {np.quantile(a, 0.99):7.0f} us   "
        f"NumPy {np.median(b):6.0f} us   ratio {np.median(a) / np.median(b):.2f}"
    )


KINDS: dict[str, dict[str, Any]] = {
    "pairwise": {"loss": "pairwise"},
    "softmax": {"loss": "softmax"},
}
"""How the models were trained whose visitors are timed."""


def visitors_of(items: int, settings: dict[str, Any], number: int) -> dict[str, Callable[[int], object]]:
    """Return what a visitor with up to 20 likes asks of a model that was trained so."""
    rng = np.random.default_rng(1)
    columns = (items * rng.random((400, 30)) ** 2).astype(np.int64)
    rows = np.repeat(np.arange(400), 30)
    seen = sp.csr_matrix((np.ones(rows.size, np.float32), (rows, columns.ravel())), shape=(400, items))
    model = SAD(factors=FACTORS, iterations=1, num_threads=1, **settings)
    model.fit(Interactions.from_csr(seen), show_progress=False)
    model.state = replace(model.state, belief=random_model(items).state.belief)  # of the size that a long fit gives
    likes = [rng.choice(items, size, replace=False) for size in np.resize(np.arange(1, 21), number)]
    some = np.sort(rng.choice(items, 20, replace=False))
    given = sp.csr_matrix((np.ones(20, np.float32), some, [0, 20]), shape=(1, items))
    return {
        "visitor": lambda turn: model.visitor(likes[turn]),
        "recommend_for": lambda turn: model.recommend_for(likes[turn]),
        "recalculate_user": lambda turn: model.recommend(0, given, recalculate_user=True),
    }


def time_visitors(items: int, number: int, rounds: int) -> None:
    """Print how long a visitor waits. Models and verbs take turns; the best of some rounds counts."""
    calls = {
        (kind, verb): call
        for kind, settings in KINDS.items()
        for verb, call in visitors_of(items, settings, number).items()
    }
    for call in calls.values():
        seconds(call, 20)
    milliseconds = [{question: 1e3 * seconds(call, number) for question, call in calls.items()} for _ in range(rounds)]
    for kind, verb in calls:
        median, p99 = (min(np.quantile(one[kind, verb], share) for one in milliseconds) for share in (0.5, 0.99))
        print(f"{verb:<16} {items:7,} items  {kind:<12}  median {median:6.2f} ms  p99 {p99:6.2f} ms")


def compare_vectors(items: int) -> None:
    """Print how far the vector of a visitor is from the one that sixteen times as many negatives lead to."""
    parameters = random_model(items).state.parameters
    rng = np.random.default_rng(2)
    for size in (1, 20):
        rows = []
        for _ in range(10):
            liked = np.sort(rng.choice(items, size, replace=False))
            many = fold_in(parameters, liked, negatives=65536 // size).vector
            few = fold_in(parameters, liked).vector
            best = [set(np.argsort(-mean_margins(parameters, one, None))[:N].tolist()) for one in (many, few)]
            rows.append((np.linalg.norm(few - many) / np.linalg.norm(many), len(best[0] & best[1]) / N))
        away, same = np.mean(rows, axis=0)
        print(
            f"vector           {items:7,} items  {size:2} likes: {100 * away:.1f} % away from that of "
            f"16 times as many negatives, {100 * same:.0f} % of the {N} best items the same"
        )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default="3706,100000")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--visitors", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5, help="of the visitors, of which the best counts")
    parser.add_argument("--cpu", action="store_true", help="count the processor's time, not that on the wall")
    given = parser.parse_args()
    if given.cpu:
        CLOCK[0] = time.thread_time
    with threadpool_limits(1):
        for items in map(int, given.items.split(",")):
            compare_recommend(items, given.calls if items < 20_000 else given.calls // 10)
            time_visitors(items, given.visitors, given.rounds)
            compare_vectors(items)


if __name__ == "__main__":
    main()
