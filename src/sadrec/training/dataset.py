"""Training data of any kind, over one list of users and one of items."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.check import numbers
from sadrec._core.files import fingerprint
from sadrec._core.memory import need, size
from sadrec._core.sparse import as_csr, make
from sadrec._core.types import Floats
from sadrec.data import Comparisons, Interactions
from sadrec.data._kernels import merge_rows
from sadrec.data.ids import IdArray, Ids, join_ids
from sadrec.training.settings import Kind, Settings
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.given import ROUND, Pairs, cells_of
from sadrec.training.sgd.negatives import CHUNK, Positives
from sadrec.training.sgd.samplers import Disliked, Ordered, PairSource, Stated, balance, marked
from sadrec.training.sgd.spectrum import choices, decompose, sample_users, start_items, start_users
from sadrec.training.sgd.survey import Survey, survey
from sadrec.training.validation import HeldOut

Weights = Floats | NDArray[np.int8]
_NO_ENTRIES: tuple[Any, ...] = tuple(np.empty(0, dtype) for dtype in (np.int32, np.float32, bool, bool))


@dataclass(frozen=True)
class TrainingData:
    """The data of a fit, in rows and columns."""

    users: Ids
    items: Ids
    matrix: Any | None  # CSR of interactions over these ids
    weights: Weights | None  # of each entry, or 1; of weight 0: known, but not trained on; below 0: disliked
    has_ratings: bool  # whether the values of the matrix order the items of a user
    comparisons: Pairs | None
    ties: Pairs | None = None  # comparisons that nobody won
    feature_names: tuple[str, ...] = ()  # those of the comparisons, where a fit has one set of them

    @property
    def kind(self) -> Kind:
        """The kind of data that decides default settings: interactions, if there are any."""
        return "comparisons" if self.matrix is None else "interactions"

    @property
    def interactions(self) -> int:
        """The number of interactions, dislikes included."""
        return 0 if self.matrix is None else int(self.matrix.nnz)

    @property
    def triples(self) -> int:
        """The number of interactions and comparisons; a comparison of weight k is k comparisons."""
        return self.interactions + (0 if self.comparisons is None else ceil(self.comparisons.total))

    @cached_property
    def has_dislikes(self) -> bool:
        """Whether some entries were disliked."""
        return self.weights is not None and bool(self.weights.min(initial=0) < 0)

    def fingerprint(self) -> str:
        """Return a digest of all of it."""
        matrix, pairs = self.matrix, self.comparisons
        return fingerprint(
            *(self.users.array, self.items.array, self.weights),
            *([None] * 3 if matrix is None else (matrix.indptr, matrix.indices, matrix.data)),
            *([None] * 4 if pairs is None else pairs.arrays),
            *(() if self.ties is None else self.ties.arrays),
        )

    def with_ignored(self, ignored: Any) -> "TrainingData":
        """Add entries with weight 0, which are neither sampled as negatives nor trained on; entries of the data win."""
        return self if self.matrix is None else self._merged(ignored)[0]

    def _merged(self, ignored: Any) -> tuple["TrainingData", NDArray[np.bool_]]:
        """Add entries with weight 0; return the data, and which of all entries are among them."""
        matrix, own, theirs = merged(self.matrix, ignored)
        weights: Any = own.view(np.int8)
        if self.weights is not None:
            weights = np.zeros(matrix.nnz, self.weights.dtype)
            weights[own] = self.weights
        return replace(self, matrix=matrix, weights=weights), theirs

    def with_dislikes(self, dislikes: float | Interactions) -> "TrainingData":
        """Mark dislikes: ratings below a number, or the entries of other interactions.

        A disliked item is known and not trained on as something liked, even when it is among the interactions too.
        """
        if self.matrix is None:
            raise ValueError("dislikes belong to interactions; in comparisons the disliked item is the loser")
        if isinstance(dislikes, bool) or (isinstance(dislikes, float) and np.isnan(dislikes)):
            raise ValueError(
                f"dislikes must be a number, below which a rating is a dislike, or interactions, not {dislikes!r}"
            )
        data = self
        if isinstance(dislikes, Interactions):
            # Rated below everything that is liked.
            given = align_ids(dislikes, self.users, self.items, np.zeros(dislikes.matrix.nnz, np.float32))
            data, disliked = self._merged(given)
        elif not self.has_ratings:
            raise ValueError(
                f"dislikes={dislikes!r} means ratings below {dislikes!r}, but the data has no ratings: give the "
                "disliked pairs as interactions of their own"
            )
        else:
            disliked = self.matrix.data < float(dislikes)
        if not disliked.any():
            raise ValueError(f"nothing is disliked: no rating lies below {dislikes!r}")
        if disliked.all():
            raise ValueError("everything is disliked, and nothing is left to learn from: give a lower number")
        if self.weights is not None:
            return replace(data, weights=np.where(disliked, np.float32(-1), np.asarray(data.weights)))
        signs = disliked.view(np.int8)  # 1 is to be -1, and 0 to be 1
        return replace(data, weights=np.add(np.multiply(signs, -2, out=signs), 1, out=signs))

    def seen(self) -> Any:
        """Return the seen items, with -1 for disliked ones; None with comparisons alone."""
        if self.matrix is None or self.weights is None or not self.has_dislikes:
            return self.matrix
        values = np.where(self.weights < 0, np.float32(-1), self.matrix.data)
        return make(values, self.matrix.indices, self.matrix.indptr, self.matrix.shape)

    def users_with_data(self) -> NDArray[np.bool_]:
        """Return which users have any data."""
        present = np.zeros(len(self.users), bool)
        if self.matrix is not None:
            present |= np.diff(self.matrix.indptr) > 0
        if self.comparisons is not None:
            present[self.comparisons.user] = True
        return present

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return len(self.users), len(self.items)

    @property
    def has_pairs(self) -> bool:
        """Whether there are given pairs to train on: comparisons, or dislikes."""
        return self.comparisons is not None or self.has_dislikes

    def survey(self, settings: Settings, factors: int | None, length: float | None, threads: int) -> Survey:
        """Return the settings that the interactions suggest: see :func:`sadrec.training.sgd.survey.survey`."""
        return survey(self.sample(), settings, factors, length, threads)

    def start(self, factors: Factors, length: float) -> None:
        """Write where factors start: at the spectrum of the interactions."""
        spectrum, (indptr, indices) = decompose(self.sample(), factors.k), kernel_rows(self.matrix)
        start_items(factors, spectrum, slice(None), length)
        start_users(factors.users, spectrum, (indptr, indices, self.weights), length)

    def sample(self) -> Any:
        """Return what users chose, a row each; of much data those of some users."""
        indptr, indices = kernel_rows(self.matrix)
        lengths = np.diff(indptr) if self.weights is None else marked(indptr, self.weights)
        users = sample_users(lengths)
        rows = np.zeros(len(lengths), bool)
        rows[users] = True
        counts = np.diff(indptr)
        kept = np.repeat(rows, counts)
        starts = np.concatenate([[0], np.cumsum(counts[users])])
        return choices(starts, indices[kept], None if self.weights is None else self.weights[kept], len(self.items))

    def positives(self, settings: Settings) -> Positives | None:
        """Return the interactions to train against sampled negatives, or None."""
        if self.matrix is None or settings.order_share == 1:
            return None
        return Positives(*kernel_rows(self.matrix), self.weights, self._user_weights(settings))

    def pair_sources(self, settings: Settings) -> list[PairSource]:
        """Return the sources of given pairs."""
        sources: list[PairSource] = [] if self.comparisons is None else [Stated(self.comparisons)]
        if self.matrix is None:
            return sources
        share = settings.order_share
        rows, items = kernel_rows(self.matrix), len(self.items)
        if self.weights is not None and self.has_dislikes:
            sources.append(Disliked(rows, self.weights, items))
        if share > 0:
            per_item = 1.0 if share == 1 else share / (1 - share)
            sources.append(Ordered(rows, self.matrix.data, per_item, self.ordered()))
        return sources

    def ordered(self) -> NDArray[np.bool_] | None:
        """Return the interactions whose order is learnt: those that count, and dislikes; None for all."""
        return None if self.weights is None or self.weights.all() else np.asarray(self.weights != 0)

    def validation_pairs(self, data: Interactions | Comparisons, seed: int) -> Pairs | HeldOut:
        """Turn held-out data into triples; its users and items must be known."""
        if isinstance(data, Comparisons):
            data = data.decided
            if not len(data) or (data.weight is not None and not np.any(data.weight)):
                raise ValueError("the validation set holds nothing to check the model on")
            return align_pairs(data, self.users, self.items)
        held_out = kernel_rows(align_ids(data, self.users, self.items))
        rows = held_out if self.matrix is None else kernel_rows(self.matrix)
        validation = HeldOut(rows, held_out, len(self.items), seed)
        if not any(map(len, validation)):
            raise ValueError("the validation set holds nothing to check the model on")
        return validation

    def _user_weights(self, settings: Settings) -> Floats | None:
        """Return how much each user's interactions count, with ``user_balance``; None: all the same."""
        if self.matrix is None or not settings.user_balance:
            return None
        start = self.matrix.indptr.astype(np.int64)
        counts = np.diff(start) if self.weights is None else marked(start, self.weights)
        return balance(counts, settings.user_balance).astype(np.float32)


def training_data(
    data: Interactions | Comparisons,
    comparisons: Comparisons | None = None,
    weights: Any = None,
    dislikes: float | Interactions | None = None,
    users: IdArray | None = None,
    items: IdArray | None = None,
) -> TrainingData:
    """Return the training data of a fit: see ``SAD.fit``. ``users`` and ``items`` are ids that come first."""
    parts = [part for part in (data, comparisons, dislikes) if isinstance(part, Interactions | Comparisons)]
    all_users = Ids(join_ids(users, *(part.users for part in parts)), what="user")
    all_items = Ids(join_ids(items, *(part.items for part in parts)), what="item")
    matrix, aligned_weights = None, None
    if isinstance(data, Interactions):
        matrix = align_ids(data, all_users, all_items)
        if weights is not None:
            aligned_weights = align_ids(data, all_users, all_items, _checked_weights(weights, data)).data
    elif weights is not None:
        raise ValueError("weights belong to interactions; give comparisons their own weight column")
    stated = [part for part in parts if isinstance(part, Comparisons)]
    pairs = [align_pairs(part.decided, all_users, all_items) for part in stated if len(part.decided)]
    ties = [align_pairs(part.ties, all_users, all_items) for part in stated if part.ties is not None]
    result = TrainingData(
        users=all_users,
        items=all_items,
        matrix=matrix,
        weights=aligned_weights,
        has_ratings=isinstance(data, Interactions) and data.has_ratings,
        comparisons=Pairs.concatenate(pairs) if pairs else None,
        ties=Pairs.concatenate(ties) if ties else None,
        feature_names=stated[0].feature_names if len(stated) == 1 else (),
    )
    if len(all_items) < 2:
        raise ValueError(f"a preference needs two items, and there is only {len(all_items)}: give data on more items")
    if not result.triples:
        raise ValueError(
            "all comparisons have the weight 0: there is nothing to learn from"
            if pairs
            else "all comparisons are ties: nothing tells which items are better"
            if ties
            else "there is nothing to learn from: no interaction and no comparison"
        )
    return result if dislikes is None else result.with_dislikes(dislikes)


def align_ids(data: Any, users: Ids, items: Ids, values: NDArray[Any] | None = None) -> Any:
    """Return the matrix of interactions with the rows and columns that these ids give it, perhaps with other values."""
    matrix = data.matrix
    if np.array_equal(data.users, users.array) and np.array_equal(data.items, items.array):
        return matrix if values is None else make(values, matrix.indices, matrix.indptr, matrix.shape)
    entries = matrix.tocoo()
    row, column = users.positions(data.users)[entries.row], items.positions(data.items)[entries.col]
    values = entries.data if values is None else values
    return sp.csr_matrix((values, (row, column)), shape=(len(users), len(items)))


def kernel_rows(matrix: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return ``(indptr, indices)`` of a CSR matrix in the types that kernels are compiled for."""
    indices = matrix.indices.astype(np.int32, copy=False).view()
    indices.flags.writeable = False
    return matrix.indptr.astype(np.int64), indices


def merged(first: Any, second: Any) -> tuple[Any, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the entries of two matrices of one shape, the first's where both have one, and which are of each."""
    given = *kernel_rows(first), first.data, *kernel_rows(second), second.data
    indptr = np.zeros(first.shape[0] + 1, np.int64)
    merge_rows(*given, indptr, *_NO_ENTRIES)
    size = int(indptr[-1])
    columns, values = np.empty(size, np.int32), np.empty(size, np.float32)
    of_first, of_second = np.zeros(size, bool), np.zeros(size, bool)
    merge_rows(*given, indptr, columns, values, of_first, of_second)
    narrow = indptr.astype(np.int32) if size <= np.iinfo(np.int32).max else indptr
    return make(values, columns, narrow, first.shape), of_first, of_second


def align_pairs(data: Comparisons, users: Ids, items: Ids) -> Pairs:
    """Return comparisons as triples of rows of these ids."""
    user, winner, loser = data.user_index, data.winner_index, data.loser_index
    if not np.array_equal(users.array, data.users):
        user = np.asarray(users.positions(data.users), np.int32)[user]
    if not np.array_equal(items.array, data.items):
        position = np.asarray(items.positions(data.items), np.int32)
        winner, loser = position[winner], position[loser]
    return Pairs(user, winner, loser, data.weight, data.features)


def _checked_weights(weights: Any, data: Interactions) -> Floats:
    if sp.issparse(weights):
        weights = as_csr(weights, "weights")
        if not np.array_equal(weights.indptr, data.matrix.indptr) or not np.array_equal(
            weights.indices, data.matrix.indices
        ):
            raise ValueError("weights given as a sparse matrix must have the entries of the interactions")
        weights = weights.data
    array = np.asarray(weights)
    if array.shape != data.matrix.data.shape:
        raise ValueError(
            f"weights must be one per interaction, {data.matrix.nnz}, in the order of data.matrix, not {array.shape}"
        )
    return numbers(array, "weights", 0.0)


# -- the memory of a fit in addition to its data, estimated from the settings before anything is allocated -------------


def check_size(data: TrainingData, settings: Settings, threads: int) -> None:
    """Raise if a fit needs more memory than is free; the error names the setting that needs most of it."""
    needed = bytes_needed(data, settings, threads)
    name = max(needed, key=lambda part: needed[part])
    total = f"{name}={getattr(settings, name)!r} takes {size(needed[name])}: the fit" if name != "data" else "the fit"
    need(sum(needed.values()), total, f"lower {name}" if name != "data" else "fit a part of it")


def bytes_needed(data: TrainingData, settings: Settings, threads: int) -> dict[str, int]:
    """Return the peak memory of a fit in bytes: by setting, and for arrays in addition to the data."""
    users, items, k = len(data.users), len(data.items), settings.factors
    if settings.solver == "variational":
        moments = (k + 1) ** 2 * (users + 4 * items)
        rows = len(data.comparisons or ())  # at most: equal ones are counted; two learners hold them
        return {"factors": 8 * moments + 3 * 4 * moments, "data": 230 * rows}
    vectors = users + items * (3 if settings.learn_rivals and settings.adaptive else 2 if settings.learn_rivals else 1)
    needed = {"factors": 4 * k * vectors, "blocks": 0, "negative_candidates": 0, "negatives": 0, "data": 0}
    positives = data.positives(settings)
    if positives is not None:
        longest = int(np.diff(positives.indptr).max(initial=0))
        needed["blocks"] += 4 * users * (settings.blocks + 1) + 48 * settings.blocks**2
        if settings.loss == "softmax":  # all positives of a chunk share them
            negatives, width = min(settings.negatives, items), (2 if settings.learn_rivals else 1) * k
            larger = "factors" if width > negatives else "negatives"
            needed[larger] += 4 * threads * (2 * CHUNK * (negatives + width) + 3 * negatives * width)
        else:
            needed["negative_candidates"] = 4 * threads * (CHUNK + longest) * settings.negative_candidates
        needed["data"] += len(positives.indices) * (2 if positives.weights is None else 2 + positives.weights.itemsize)
    if positives is None or data.has_pairs or settings.order_share > 0:
        needed["blocks"] += 60 * cells_of(max(settings.blocks // 2, 1))
        needed["data"] += 26 * min(ROUND, 100 * data.triples)
    return needed
