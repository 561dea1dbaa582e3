"""The comparisons behind the paper's measures: held-out against liked and against sampled items, block by block."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sadrec import _check
from sadrec.data import Interactions
from sadrec.evaluation._running import over_blocks, user_blocks
from sadrec.evaluation.metrics.pairs import Pairs
from sadrec.evaluation.metrics.sampled import Contest
from sadrec.evaluation.sampling import uniforms, unmet_items
from sadrec.evaluation.sources import source_of

USERS_PER_BLOCK = 64
R = TypeVar("R")


def check_split(train: Interactions, test: Interactions) -> None:
    """Refuse two parts that are not of one split."""
    for part in (train, test):
        if not isinstance(part, Interactions):
            raise TypeError(
                f"the parts of a split must be Interactions, not {type(part).__name__}; make them with "
                "data.leave_one_out() or data.split()"
            )
    same = (
        train.matrix.shape == test.matrix.shape
        and np.array_equal(train.users, test.users)
        and np.array_equal(train.items, test.items)
    )
    if not same:
        raise ValueError(
            f"the two parts have shapes {train.matrix.shape} and {test.matrix.shape} or different ids; make them with "
            "data.leave_one_out() or data.split(), whose parts keep the ids, shape and order of the data"
        )


def check_held_out(train: Interactions, test: Interactions) -> sparse.csr_matrix:
    """Refuse two parts that are not of one split, or that share interactions; return the pattern of both together."""
    check_split(train, test)
    met = union_pattern(train, test)
    if len(shared := np.flatnonzero(met.data > 1)):
        row = int(np.searchsorted(met.indptr, shared[0], side="right")) - 1
        user, item = train.users[row].item(), train.items[met.indices[shared[0]]].item()
        raise ValueError(
            f"{len(shared):,} of {test.matrix.nnz:,} held-out interactions are in the training part too (user {user!r} "
            f"with item {item!r}, for one): what was trained on cannot judge; take them out of one of the two"
        )
    return met


def pattern(data: Interactions) -> sparse.csr_matrix:
    """Return the interactions as a sparse matrix of ones, an explicit 0 included."""
    given = data.matrix
    return sparse.csr_matrix((np.ones(given.nnz, np.float32), given.indices, given.indptr), shape=given.shape)


def union_pattern(first: Interactions, *others: Interactions) -> sparse.csr_matrix:
    """Return a matrix whose stored entries are all interactions of the parts, sorted within rows."""
    total = pattern(first)
    for part in others:
        total = total + pattern(part)
    total.sort_indices()
    return total


class Plan:
    """Which items of a split are compared with which, for every user, and by which model."""

    def __init__(
        self,
        model: object,
        train: Interactions,
        held_out: Interactions,
        seed: int = 0,
        sampled: int = 100,
        cut: int = 20,
        factors: bool = True,
    ) -> None:
        self.met = check_held_out(train, held_out)
        if sampled < 1 or not 0 < cut <= sampled:
            raise ValueError(f"need sampled >= 1 and 0 < cut <= sampled, got sampled={sampled} and cut={cut}")
        self.source = source_of(model, train, factors=factors)
        self.train, self.held_out, self.seed, self.sampled, self.cut = train, held_out, seed, sampled, cut

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the users who have a held-out item."""
        return np.flatnonzero(np.diff(self.held_out.matrix.indptr))

    def each(self, work: Callable[[NDArray[np.int64]], R], num_threads: int = 0, progress: bool = False) -> Iterator[R]:
        """Yield ``work(rows)`` for blocks of :attr:`rows`, in order."""
        blocks = user_blocks(self.rows, USERS_PER_BLOCK)
        threads = _check.threads(num_threads) if self.source.concurrent else 1
        return over_blocks(work, blocks, threads, progress, "evaluate")

    def compared(self, rows: NDArray[Any]) -> tuple[Pairs, Contest, NDArray[np.int64]]:
        """Compare every held-out item of the users in ``rows``; also say which of them each case belongs to."""
        block = self.source.block(rows)
        numbers = uniforms(self.seed, rows, self.sampled)
        answers, owner = [], []
        for position, row in enumerate(rows.tolist()):
            liked, liked_ratings = _row(self.train, row)
            held, held_ratings = _row(self.held_out, row)
            met = self.met.indices[self.met.indptr[row] : self.met.indptr[row + 1]]
            others = unmet_items(self.seed, row, met, self.met.shape[1], self.sampled, numbers[position])
            for item, rating in zip(held.tolist(), held_ratings.tolist(), strict=True):
                tests = np.concatenate([[item], others])
                over_liked = _finite(block(position, tests, liked))
                over_others = _finite(block(position, tests[:1], others))
                answers.append(
                    (
                        over_liked[0],
                        np.sign(rating - liked_ratings),
                        over_others[0],
                        np.count_nonzero(over_liked > 0, axis=1),
                        over_liked.mean(axis=1) if len(liked) else np.zeros(len(tests)),
                        self.source.probability(row, tests[:1], liked, over_liked[:1]),
                        self.source.probability(row, tests[:1], others, over_others),
                    )
                )
                owner.append(position)
        return (*_joined(answers, self.cut, self.sampled), np.array(owner, dtype=np.int64))


def _joined(answers: list[tuple[Any, ...]], cut: int, sampled: int) -> tuple[Pairs, Contest]:
    margin, outcome, over_others, wins, means, p_liked, p_others = zip(*answers, strict=True)
    cases = np.arange(len(answers))
    liked = np.array([len(part) for part in margin])
    offered = p_liked[0] is not None
    pairs = Pairs(
        np.concatenate(margin),
        np.concatenate(outcome),
        np.repeat(cases, liked),
        len(answers),
        np.concatenate([p[0] for p in p_liked]) if offered else None,
    )
    contest = Contest(
        case=np.repeat(cases, [len(part) for part in over_others]),
        margin=np.concatenate(over_others),
        wins=np.concatenate([part[1:] for part in wins]),
        mean=np.concatenate([part[1:] for part in means]),
        held_out_wins=np.array([part[0] for part in wins]),
        held_out_mean=np.array([part[0] for part in means]),
        liked=liked,
        probability=np.concatenate([p[0] for p in p_others]) if offered else None,
        cut=cut,
        out_of=sampled,
    )
    return pairs, contest


def _row(data: Interactions, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    matrix = data.matrix
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[part], matrix.data[part]


def _finite(margins: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(margins).all():
        raise ValueError(
            "the model gives margins that are not finite; its training has diverged (lower the learning rate)"
        )
    return margins
