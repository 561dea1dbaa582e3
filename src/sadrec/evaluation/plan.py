"""The comparisons behind the paper's measures: held-out against liked and against sampled items, block by block."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sadrec._core import check
from sadrec._core.linear import blas_threads
from sadrec._core.progress import Bar
from sadrec.data import DataWarning, Ids, Interactions
from sadrec.evaluation.metrics.pairs import RatedPairs
from sadrec.evaluation.metrics.sampled import Contest
from sadrec.evaluation.protocol import as_evaluated, positions, source_of
from sadrec.evaluation.sampling import uniforms, unmet_items

R = TypeVar("R")


def over_users(
    work: Callable[[NDArray[Any]], R], rows: NDArray[Any], threads: int = 1, size: int = 64, show_progress: bool = False
) -> Iterator[R]:
    """Yield ``work(block)`` for blocks of ``size`` users' rows, in order, whichever thread did it.

    BLAS runs on one thread here: its products are small, and its threads would wait for each other and for ours (ten
    times slower on a busy machine, and the bits could depend on the number of cores).
    """
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    with (
        blas_threads(1),
        ThreadPoolExecutor(max(threads, 1)) as pool,
        Bar(total=len(blocks), desc="evaluate", disable=None if show_progress else True, leave=False) as bar,
    ):
        # One block at a time where there is one thread: all of them at once would be held in memory.
        results = map(work, blocks) if threads <= 1 or len(blocks) <= 1 else pool.map(work, blocks)
        for result in results:
            yield result
            bar.update()


def in_ids_of(train: Interactions, test: Interactions) -> Interactions:
    """Return the test part in the rows and columns of the training part.

    Interactions of users or items that the training part does not have are left out, with a warning that counts them.
    """
    for part in (train, test):
        if not isinstance(part, Interactions):
            raise TypeError(
                f"train and test must be Interactions, not {type(part).__name__}: Interactions.read(path) reads a "
                "file, Interactions.from_frame(frame) a data frame"
            )
    if np.array_equal(train.users, test.users) and np.array_equal(train.items, test.items):
        return test
    entries = test.matrix.tocoo()
    rows = Ids(train.users).rows(test.users)[entries.row]
    columns = Ids(train.items).rows(test.items)[entries.col]
    kept = (rows >= 0) & (columns >= 0)
    if not kept.any():
        raise ValueError(
            f"no test interaction has a user and an item of the training part: the test part has ids such as "
            f"{test.users[0].item()!r} and {test.items[0].item()!r}, the training part {train.users[0].item()!r} and "
            f"{train.items[0].item()!r}"
        )
    if left_out := int((~kept).sum()):
        warnings.warn(
            f"{left_out:,} of {test.matrix.nnz:,} test interactions are left out: the training part does not have "
            "their user or item",
            DataWarning,
            stacklevel=3,
        )
    places = rows[kept], columns[kept]
    matrix = sparse.csr_matrix((entries.data[kept], places), shape=train.matrix.shape)
    return Interactions.from_csr(matrix, train.users, train.items, allow_negative=True)


def check_held_out(train: Interactions, test: Interactions, model: object = None) -> sparse.csr_matrix:
    """Return the pattern of both parts together; raise if they share interactions, or if the model has seen the test.

    Both parts have the same rows and columns, as :func:`in_ids_of` gives them.
    """
    met = pattern(train, test)
    _refuse_shared(met, test, "in the training part too", "take them out of one of the two")
    seen: Any = getattr(getattr(model, "state", model), "seen", None)
    given = as_evaluated(model) if hasattr(seen, "shape") else None
    if given is not None and seen.shape == (len(given.users), len(given.items)):
        users, items = positions(given, test)
        fitted = sparse.csr_matrix(seen[users][:, items])
        fitted.data = np.ones(fitted.nnz, np.float32)
        remedy = "fit it on the training part alone (are train and test the right way round?)"
        _refuse_shared(fitted + pattern(test), test, "what the model was fitted on", remedy)
    return met


def _refuse_shared(both: sparse.csr_matrix, test: Interactions, where: str, remedy: str) -> None:
    """Raise if held-out interactions are in another part too; ``both`` counts the parts of each."""
    if len(shared := np.flatnonzero(both.data > 1)):
        row = int(np.searchsorted(both.indptr, shared[0], side="right")) - 1
        user, item = test.users[row].item(), test.items[both.indices[shared[0]]].item()
        raise ValueError(
            f"{len(shared):,} of {test.matrix.nnz:,} held-out interactions are {where} (user {user!r} with item "
            f"{item!r}, for one): training data cannot be test data; {remedy}"
        )


def pattern(*parts: Interactions) -> sparse.csr_matrix:
    """Return how many of the parts have each interaction, sorted within rows; an explicit 0 is one, too."""
    ones = [
        sparse.csr_matrix(
            (np.ones(part.matrix.nnz, np.float32), part.matrix.indices, part.matrix.indptr), part.matrix.shape
        )
        for part in parts
    ]
    total = sum(ones[1:], ones[0])
    total.sort_indices()
    return total


class Plan:
    """The comparisons behind the paper's measures on one split, by one model."""

    def __init__(
        self,
        model: object,
        train: Interactions,
        held_out: Interactions,
        seed: int = 0,
        sampled: int = 100,
        cut: int = 20,
    ) -> None:
        self.met = check_held_out(train, held_out, model)
        if sampled < 1 or not 0 < cut <= sampled:
            raise ValueError(f"need sampled >= 1 and 0 < cut <= sampled, got sampled={sampled} and cut={cut}")
        self.source = source_of(model, train)
        self.train, self.held_out, self.seed, self.sampled, self.cut = train, held_out, seed, sampled, cut

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the users who have a held-out item."""
        return np.flatnonzero(np.diff(self.held_out.matrix.indptr))

    def each(
        self, work: Callable[[NDArray[np.int64]], R], num_threads: int = 0, show_progress: bool = False
    ) -> Iterator[R]:
        """Yield ``work(rows)`` for blocks of :attr:`rows`, in order."""
        threads = check.threads(num_threads) if self.source.concurrent else 1
        return over_users(work, self.rows, threads, show_progress=show_progress)

    def compared(self, rows: NDArray[Any]) -> tuple[RatedPairs, Contest, NDArray[np.int64]]:
        """Compare every held-out item of the users in ``rows``; also say which of them each case belongs to."""
        block = self.source.block(rows)
        numbers = uniforms(self.seed, rows, self.sampled)
        answers, owner = [], []
        for position, row in enumerate(rows.tolist()):
            liked, liked_ratings = row_of(self.train.matrix, row)
            held, held_ratings = row_of(self.held_out.matrix, row)
            met, _ = row_of(self.met, row)
            others = unmet_items(met, self.met.shape[1], numbers[position])
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


def _joined(answers: list[tuple[Any, ...]], cut: int, sampled: int) -> tuple[RatedPairs, Contest]:
    margin, outcome, over_others, wins, means, p_liked, p_others = zip(*answers, strict=True)
    cases = np.arange(len(answers))
    liked = np.array([len(part) for part in margin])
    offered = p_liked[0] is not None
    pairs = RatedPairs(
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


def row_of(matrix: sparse.csr_matrix, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return columns and values of a row."""
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[part], matrix.data[part]


def _finite(margins: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(margins).all():
        raise ValueError(
            "the model gives margins that are not finite; its training has diverged (lower the learning rate)"
        )
    return margins
