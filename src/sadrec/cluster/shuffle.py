"""Shuffle rows of files among workers, until each has all interactions of its users.

What one machine does with a folder of Parquet, workers do together: ids are numbered in their order over all files, a
pair of user and item that is repeated is merged, in the order of the rows. Then each worker has neighbouring users,
about as many interactions each, and neighbouring items: their ids, and what the users did.

:func:`sadrec.cluster.partition.partition` calls the workers; :class:`Shuffle` is what each of them does.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Floats
from sadrec.cluster import rows
from sadrec.cluster.layout import Bounds
from sadrec.data import Assembler, Chunk, IdArray, ParquetFiles, RowRange, arrange
from sadrec.training.engine import (
    Settings,
    Spectrum,
    Survey,
    balance_scale,
    choices,
    decompose,
    marked,
    sample_users,
    survey,
)

_SAMPLE = 256  # ids that each worker offers to cut by


class RowsRead(NamedTuple):
    """A worker's report on the rows that it read."""

    rows: int
    types: tuple[str, str, str | None]  # of the ids of users and of items, and of timestamps
    has_ratings: bool
    users: IdArray  # some of them, at equal distances
    items: IdArray


class IdCounts(NamedTuple):
    """Numbers of users and items of a worker."""

    users: int
    items: int


class Received(NamedTuple):
    """A worker's report on the interactions of its users."""

    interactions: int
    longest: int  # row
    digest: int  # a sum over interactions and ids, the same however they are partitioned


class Held(NamedTuple):
    """The users and items of a worker, and the interactions of these users."""

    users: IdArray
    items: IdArray
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Floats
    weights: Floats | None = None


class Piece(NamedTuple):
    """The interactions of some users, one after another."""

    lengths: NDArray[np.int32]
    items: NDArray[np.int32]
    weights: Floats | None

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(array.nbytes for array in self if array is not None)


class Shuffle:
    """The data of one worker: reads a part of the files, and exchanges rows with the others.

    Methods are called in the order in which they stand here, each of all workers before the next.
    """

    def __init__(self, number: int, workers: int) -> None:
        self.number, self.workers = number, workers
        self.bounds: tuple[Bounds, Bounds]
        self._read: Assembler
        self.held: Held

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, files: ParquetFiles, runs: list[RowRange]) -> RowsRead:
        """Read some rows."""
        self._files, self._read = files, files.read(runs)
        self._ids = self._read.ids()
        (users, user_place), (items, item_place) = self._ids
        counts = self._read.counts(user_place, item_place)
        some = (_sampled(ids, count) for ids, count in zip((users, items), counts, strict=True))
        types = _type(users), _type(items), self._read.stamp_type
        return RowsRead(self._read.rows, types, self._read.has_ratings, *some)

    def send_ids(self, user_cuts: IdArray, item_cuts: IdArray) -> Any:
        """Return, for each worker, the ids of this one that it will have."""
        self._cut = [_cut(ids, cuts) for (ids, _), cuts in zip(self._ids, (user_cuts, item_cuts), strict=True)]
        pieces = [
            tuple(ids[slice(*cut[other : other + 2])] for (ids, _), cut in zip(self._ids, self._cut, strict=True))
            for other in range(self.workers)
        ]
        return tuple(pieces)

    def merge_ids(self, *pieces: tuple[IdArray, IdArray]) -> Any:
        """Order the ids of this worker; return their number and, for each worker, the places of those it has sent."""
        users, items = (np.unique(np.concatenate([piece[side] for piece in pieces])) for side in (0, 1))
        nothing = np.empty(0, np.int64)
        self.held = Held(users, items, nothing, nothing.astype(np.int32), nothing.astype(np.float32))
        places = (
            tuple(np.searchsorted(*side).astype(np.int32) for side in ((users, u), (items, i))) for u, i in pieces
        )
        return IdCounts(len(users), len(items)), *places

    def send_rows(self, bounds: tuple[Bounds, Bounds], *places: tuple[Any, Any]) -> Any:
        """Return, for each worker, the rows of its users, with positions for ids."""
        self.bounds = bounds
        number_of = []
        for side, (_, place) in enumerate(self._ids):
            starts = bounds[side][:-1].tolist()
            whole = np.concatenate([piece[side] + np.int32(start) for start, piece in zip(starts, places, strict=True)])
            number_of.append(whole[place])
        chunks = self._read.numbered(*number_of)
        del self._read, self._ids, self._cut
        pieces: list[list[Chunk]] = [[] for _ in range(self.workers)]
        for chunk in chunks:
            owner = np.searchsorted(bounds[0], chunk["user"], side="right") - 1
            for other, piece in enumerate(pieces):
                mine = owner == other
                if mine.any():
                    piece.append({role: values[mine] for role, values in chunk.items()})
            chunk.clear()
        return tuple(_joined(piece) for piece in pieces)

    def receive_rows(self, *pieces: Chunk) -> Received:
        """Receive the rows of the users of this worker."""
        first, last = self.bounds[0][self.number : self.number + 2].tolist()
        chunks = [{**piece, "user": piece["user"] - np.int32(first)} for piece in pieces if piece]
        weighted = [{**chunk, "rating": chunk.pop("weight")} for chunk in chunks if "weight" in chunk]
        mode, weights = self._files.duplicates or "last", None
        merged = arrange(chunks, last - first, mode)
        if self._files.weight is not None:
            weights = arrange(weighted, last - first, "sum" if mode == "count" else mode)[2]
        self.held = self.held._replace(indptr=merged[0], indices=merged[1], values=merged[2], weights=weights)
        return Received(len(merged[1]), int(np.diff(merged[0]).max(initial=0)), self._digest())

    def all_held(self) -> Held:
        """Return users, items and interactions, for another worker with this number to take over."""
        return self.held

    def assign(self, held: Held, bounds: tuple[Bounds, Bounds]) -> None:
        """Take over users, items and interactions; a node holds those in Ray's store once."""
        self.held, self.bounds = held, bounds

    def _digest(self) -> int:
        """Return a sum over interactions and ids that does not depend on how they are partitioned."""
        held, (users, items) = self.held, (int(bounds[self.number]) for bounds in self.bounds)
        total = int(rows.digest(held.indptr, held.indices, held.values.view(np.uint32), np.uint64(users)))
        if held.weights is not None:  # counted from elsewhere, so that the two cannot be exchanged
            start = np.uint64(users + 2**62)
            total += int(rows.digest(held.indptr, held.indices, held.weights.view(np.uint32), start))
        for salt, (ids, first) in enumerate(((held.users, users), (held.items, items)), 1):
            total += int(rows.mixed_sum(_keys(ids), np.uint64(first), np.uint64(salt)))
        return total % 2**64

    def ids(self) -> tuple[IdArray, IdArray, NDArray[np.int32]]:
        """Return the ids of the users and of the items of this worker, and the number of interactions of each user."""
        return self.held.users, self.held.items, np.diff(self.held.indptr).astype(np.int32)

    def items_of_interactions(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return the items of some interactions, which are counted in the order of the users."""
        return self.held.indices[start:stop]

    def values_of_interactions(self, start: int, stop: int) -> Floats:
        """Return the values of some interactions, which are counted in the order of the users."""
        return self.held.values[start:stop]

    # -- what settings follow -----------------------------------------------------------------------------------------

    def chosen(self) -> NDArray[np.int32]:
        """Return how many interactions each user of this worker has; those of weight 0 do not count."""
        return chosen(self.held.indptr, self.held.weights).astype(np.int32)

    def choose_sample(self, *chosen: NDArray[np.int32]) -> Any:
        """Return, for each worker, the users in the sample of the survey; ``chosen`` are the counts of all workers."""
        wanted = sample_users(np.concatenate(chosen))
        self._sample = self.worker_of(wanted)
        pieces = [wanted[self._sample == other] for other in range(self.workers)]
        return tuple(pieces)

    def rows_of(self, users: NDArray[np.int64]) -> Piece:
        """Return what some users of this worker did."""
        return self.piece((users - self.bounds[0][self.number]).astype(np.int32))

    def survey(
        self, settings: Settings, factors: int | None, length: float | None, threads: int, *pieces: Piece
    ) -> Survey:
        """Return the settings that the rows of the sampled users suggest."""
        return survey(self._chosen(pieces), settings, factors, length, threads)

    def spectrum(self, count: int, *pieces: Piece) -> Spectrum:
        """Return the spectrum of the rows of the sampled users."""
        return decompose(self._chosen(pieces), count)

    def _chosen(self, pieces: tuple[Piece, ...]) -> Any:
        """Return what the sampled users chose, a row each."""
        indptr, indices, weights = together(self._sample, pieces)
        del self._sample
        return choices(indptr, indices, weights, int(self.bounds[1][-1]))

    def balance_scale(self, power: float, *chosen: NDArray[np.int32]) -> float:
        """Return the factor that makes the mean weight of interactions 1; ``chosen`` are the counts of all workers."""
        return balance_scale(np.concatenate(chosen).astype(np.int64), power)

    def positions(self, users: IdArray, items: IdArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of ids among all users and all items; -1 for those that this worker does not have."""
        places, held = [], (self.held.users, self.held.items)
        for side, (own, ids) in enumerate(zip(held, (users, items), strict=True)):
            if len(own) and len(ids) and own.dtype.kind != ids.dtype.kind:
                raise TypeError(
                    f"ids of two kinds meet, {own[0].item()!r} and {ids[0].item()!r}: convert one side first"
                )
            place = np.searchsorted(own, ids)
            here = place < len(own)
            here[here] = own[place[here]] == ids[here]
            places.append(np.where(here, place + self.bounds[side][self.number], -1))
        return places[0], places[1]

    def worker_of(self, users: NDArray[Any]) -> NDArray[np.int64]:
        """Return the worker that has each of some users."""
        return np.searchsorted(self.bounds[0], users, side="right") - 1

    def piece(self, users: NDArray[np.int32]) -> Piece:
        """Return the interactions of some users, numbered from the first of this worker."""
        start = rows.row_starts(self.held.indptr, users)

        def gathered(values: Any) -> Any:
            own = np.empty(start[-1], values.dtype)
            rows.take_rows(self.held.indptr, values, users, start, own)
            return own

        weights = None if self.held.weights is None else gathered(self.held.weights)
        return Piece(np.diff(start).astype(np.int32), gathered(self.held.indices), weights)


def together(
    worker: NDArray[np.int64], pieces: tuple[Piece, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats | None]:
    """Join a piece of every worker into a CSR matrix of users in order; ``worker`` is the worker of each user."""
    indptr = np.zeros(len(worker) + 1, np.int64)
    for other, piece in enumerate(pieces):
        indptr[1:][worker == other] = piece.lengths
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], np.int32)
    weights = None if pieces[0].weights is None else np.empty(indptr[-1], np.float32)
    for other, piece in enumerate(pieces):
        own = np.flatnonzero(worker == other)
        rows.put_rows(indptr, own, piece.items, indices)
        if weights is not None:
            rows.put_rows(indptr, own, piece.weights, weights)
    return indptr, indices, weights


def chosen(indptr: NDArray[np.int64], weights: Floats | None) -> NDArray[np.int64]:
    """Return how many interactions of each row count."""
    return np.diff(indptr) if weights is None else np.asarray(marked(indptr, weights))


def _sampled(ids: IdArray, counts: NDArray[np.int64]) -> IdArray:
    """Return sorted ids at equal distances."""
    until = np.cumsum(counts)
    wanted = (np.arange(_SAMPLE) + 0.5) * (until[-1] / _SAMPLE)
    return np.asarray(ids[np.minimum(np.searchsorted(until, wanted), len(ids) - 1)])


def _type(ids: IdArray) -> str:
    return "text" if ids.dtype.kind == "U" else ids.dtype.str


def _cut(ids: IdArray, cuts: IdArray) -> list[int]:
    """Return where sorted ids are cut: the ids of worker w are below the w-th cut."""
    return [0, *np.searchsorted(ids, cuts).tolist(), len(ids)]


def _joined(chunks: list[Chunk]) -> Chunk:
    """Join rows; of none, return nothing."""
    return {role: np.concatenate([chunk[role] for chunk in chunks]) for role in chunks[0]} if chunks else {}


def _keys(ids: IdArray) -> NDArray[np.uint64]:
    """Return a number of 64 bits for each id, the same for the same id."""
    if ids.dtype.kind != "U":
        return np.ascontiguousarray(ids).view(np.uint64)
    letters = np.ascontiguousarray(ids).view(np.uint32).reshape(len(ids), ids.dtype.itemsize // 4)
    keys = np.zeros(len(ids), np.uint64)
    for column in letters.T[::-1]:  # blanks at the end change nothing
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + column
    return keys
