"""Files that no machine reads alone: each worker reads some rows, and users find a home with their interactions.

What one machine does with a folder of Parquet, workers do together: ids are numbered in their order over all files, a
pair of user and item that is repeated is merged, in the order of the rows. The program that asks sees counts, some ids
to cut by, and references. Then each worker is the *home* of neighbouring users, about as many interactions each, and
of neighbouring items: it keeps their ids and what the users did. An epoch deals users anew, and their homes send what
they did to whoever trains them.

:func:`sadrec.cluster.settle.settle` has workers do all that; :class:`HomeWorker` is what each of them does.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._types import Floats
from sadrec.cluster import rows
from sadrec.cluster.layout import REST, Bounds, Key, Layout, layout, rest_layout
from sadrec.cluster.worker import Rows, Worker
from sadrec.data._assemble import Assembler, Chunk, arrange
from sadrec.data.ids import IdArray
from sadrec.data.parquet import ParquetFiles, Run
from sadrec.training.dataset import balance_scale
from sadrec.training.drawn import Positives
from sadrec.training.factors import initial_rows
from sadrec.training.given import Pairs
from sadrec.training.lift import lift_among, sampled
from sadrec.training.samplers import PairSource, Stated, marked
from sadrec.training.settings import Settings

_SAMPLE = 256  # ids that each worker offers to cut by


class Read(NamedTuple):
    """What a worker says of the rows that it read."""

    rows: int
    types: tuple[str, str, str | None]  # of the ids of users and of items, and of timestamps
    has_ratings: bool
    users: IdArray  # some of them, one for every so many rows
    items: IdArray


class Found(NamedTuple):
    """How many users and items have a home with a worker."""

    users: int
    items: int


class Moved(NamedTuple):
    """What a worker says of the interactions that it is the home of."""

    interactions: int
    longest: int  # row
    digest: int  # a sum over all interactions and ids, the same however they are shared


class Home(NamedTuple):
    """The users and items whose home a worker is."""

    users: IdArray
    items: IdArray
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Floats
    weights: Floats | None = None


class Piece(NamedTuple):
    """What some users did, one after another."""

    lengths: NDArray[np.int32]
    items: NDArray[np.int32]
    weights: Floats | None

    @property
    def nbytes(self) -> int:
        """How many bytes of numbers there are."""
        return sum(array.nbytes for array in self if array is not None)


class HomeWorker(Worker):
    """A worker that reads its part of the files, and is the home of some users and items.

    Methods are called in the order in which they stand here, each of all workers before the next.
    """

    def __init__(self, number: int, workers: int, threads: int = 1) -> None:
        self.number, self.workers, self._own_threads = number, workers, threads
        self._read: Assembler
        self._home: Home

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, files: ParquetFiles, runs: list[Run]) -> Read:
        """Read some rows."""
        self._files, self._read = files, files.read(runs)
        self._ids = self._read.ids()
        (users, user_place), (items, item_place) = self._ids
        counts = self._read.counts(user_place, item_place)
        some = (_sampled(ids, count) for ids, count in zip((users, items), counts, strict=True))
        types = _type(users), _type(items), self._read.stamp_type
        return Read(self._read.rows, types, self._read.has_ratings, *some)

    def send_ids(self, user_cuts: IdArray, item_cuts: IdArray) -> Any:
        """Return, for each worker, the ids that will have their home there, as far as they are known here."""
        self._cut = [_cut(ids, cuts) for (ids, _), cuts in zip(self._ids, (user_cuts, item_cuts), strict=True)]
        pieces = [
            tuple(ids[slice(*cut[other : other + 2])] for (ids, _), cut in zip(self._ids, self._cut, strict=True))
            for other in range(self.workers)
        ]
        return tuple(pieces) if self.workers > 1 else pieces[0]

    def merge_ids(self, *pieces: tuple[IdArray, IdArray]) -> Any:
        """Give the ids whose home is here their order; return how many there are and, to each worker, its ids'."""
        users, items = (np.unique(np.concatenate([piece[side] for piece in pieces])) for side in (0, 1))
        nothing = np.empty(0, np.int64)
        self._home = Home(users, items, nothing, nothing.astype(np.int32), nothing.astype(np.float32))
        places = (
            tuple(np.searchsorted(*side).astype(np.int32) for side in ((users, u), (items, i))) for u, i in pieces
        )
        return Found(len(users), len(items)), *places

    def send_rows(self, bounds: tuple[Bounds, Bounds], *places: tuple[Any, Any]) -> Any:
        """Return, for each worker, the rows of the users whose home is there, with positions for ids."""
        self._bounds = bounds
        number_of = []
        for side, (_, place) in enumerate(self._ids):
            starts = bounds[side][:-1].tolist()
            whole = np.concatenate([piece[side] + np.int32(start) for start, piece in zip(starts, places, strict=True)])
            number_of.append(whole[place])
        chunks = self._read.numbered(*number_of)
        del self._read, self._ids, self._cut
        pieces: list[list[Chunk]] = [[] for _ in range(self.workers)]
        for chunk in chunks:
            home = np.searchsorted(bounds[0], chunk["user"], side="right") - 1
            for other, piece in enumerate(pieces):
                mine = home == other
                if mine.any():
                    piece.append({role: values[mine] for role, values in chunk.items()})
            chunk.clear()
        joined = [_joined(piece) for piece in pieces]
        return tuple(joined) if self.workers > 1 else joined[0]

    def settle(self, *pieces: Chunk) -> Moved:
        """Take over what the users did whose home is here."""
        first, last = self._bounds[0][self.number : self.number + 2].tolist()
        chunks = [{**piece, "user": piece["user"] - np.int32(first)} for piece in pieces if piece]
        weighted = [{**chunk, "rating": chunk.pop("weight")} for chunk in chunks if "weight" in chunk]
        mode, weights = self._files.duplicates or "last", None
        merged = arrange(chunks, last - first, mode)
        if self._files.weight is not None:
            weights = arrange(weighted, last - first, "sum" if mode == "count" else mode)[2]
        self._home = self._home._replace(indptr=merged[0], indices=merged[1], values=merged[2], weights=weights)
        return Moved(len(merged[1]), int(np.diff(merged[0]).max(initial=0)), self._digest())

    def home(self) -> Home:
        """Return what has its home here."""
        return self._home

    def move_in(self, home: Home, bounds: tuple[Bounds, Bounds]) -> None:
        """Be the home of what another worker was the home of, or this one: what is in Ray's store is there once."""
        self._home, self._bounds = home, bounds

    def _digest(self) -> int:
        """Return a sum over interactions and ids that does not depend on how they are shared."""
        home, (users, items) = self._home, (int(bounds[self.number]) for bounds in self._bounds)
        total = int(rows.digest(home.indptr, home.indices, home.values.view(np.uint32), np.uint64(users)))
        if home.weights is not None:  # counted from elsewhere, so that the two cannot be exchanged
            start = np.uint64(users + 2**62)
            total += int(rows.digest(home.indptr, home.indices, home.weights.view(np.uint32), start))
        for salt, (ids, first) in enumerate(((home.users, users), (home.items, items)), 1):
            total += int(rows.mixed_sum(_keys(ids), np.uint64(first), np.uint64(salt)))
        return total % 2**64

    # -- what settings follow -----------------------------------------------------------------------------------------

    def item_ids(self) -> IdArray:
        """Return the ids of the items whose home is here."""
        return self._home.items

    def chosen(self) -> NDArray[np.int32]:
        """Return how many interactions each user has whose home is here; those of weight 0 do not count."""
        return _chosen(self._home.indptr, self._home.weights).astype(np.int32)

    def choose_sample(self, *chosen: NDArray[np.int32]) -> Any:
        """Return, for each worker, whose rows the lift looks at; ``chosen`` is what all workers have counted."""
        asked, others, rng = sampled(np.concatenate(chosen))
        wanted = np.concatenate([asked, others])
        self._sample = len(asked), np.concatenate(chosen)[others], rng, self._home_of(wanted)
        pieces = [wanted[self._sample[3] == other] for other in range(self.workers)]
        return tuple(pieces) if self.workers > 1 else pieces[0]

    def rows_of(self, users: NDArray[np.int64]) -> Piece:
        """Return what some users did whose home is here."""
        return self._taken_rows((users - self._bounds[0][self.number]).astype(np.int32))

    def lift(self, *pieces: Piece) -> float:
        """Return how personal taste is, from the rows of the sampled users."""
        asked, chosen, rng, home = self._sample
        del self._sample
        indptr, indices, weights = _together(home, pieces)
        items = int(self._bounds[1][-1])
        matrix = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(home), items))
        places = np.arange(len(home))
        return lift_among(matrix, weights, places[:asked], places[asked:], chosen.astype(np.int64), rng)

    def balance_scale(self, power: float, *chosen: NDArray[np.int32]) -> float:
        """Return what makes the mean weight of an interaction 1; ``chosen`` is what all workers have counted."""
        return balance_scale(np.concatenate(chosen).astype(np.int64), power)

    def positions(self, users: IdArray, items: IdArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of ids among all users and all items; -1 for those whose home is not here."""
        places, homes = [], (self._home.users, self._home.items)
        for side, (known, asked) in enumerate(zip(homes, (users, items), strict=True)):
            if len(known) and len(asked) and known.dtype.kind != asked.dtype.kind:
                raise TypeError(
                    f"ids of two kinds meet, {known[0].item()!r} and {asked[0].item()!r}: convert one side first"
                )
            found = np.searchsorted(known, asked)
            here = found < len(known)
            here[here] = known[found[here]] == asked[here]
            places.append(np.where(here, found + self._bounds[side][self.number], -1))
        return places[0], places[1]

    # -- training -----------------------------------------------------------------------------------------------------

    def begin(self, settings: Settings, longest: int, scale: float, stated: Pairs | None) -> None:
        """Be a worker for a fit with these settings; ``longest`` is the longest row of anybody."""
        shape = int(self._bounds[0][-1]), int(self._bounds[1][-1])
        sources: list[PairSource] = []
        if stated is not None:  # kernels are compiled for arrays that can be written to
            arrays: Any = (None if array is None else np.array(array) for array in stated.arrays)
            sources.append(Stated(Pairs(*arrays)))
        super().__init__(self.number, self.workers, shape, settings, None, sources, self._own_threads)
        self._longest, self._scale = longest, scale
        self._arrived: tuple[Key, Positives] | None = None

    def draw_first(self) -> None:
        """Hold the first factors of the users and items whose home is here."""
        one = self.settings
        users, items = (slice(*own[self.number : self.number + 2].tolist()) for own in self._bounds)
        factors = initial_rows(
            self.shape, one.factors, one.init_scale, one.learn_rivals, one.bias, one.seed, users, items
        )
        self.hold(Rows(factors.users, factors.items, factors.bias, None))

    def held_users(self) -> Floats:
        """Return the rows of the users whose home is here; all rows are in the rest layout."""
        return self._factors.users

    def held_items(self) -> Rows:
        """Return the rows of the items whose home is here; all rows are in the rest layout."""
        return self._taken(None, self._rows_of(sorted(self._slots)))

    def send_positives(self, key: Key) -> Any:
        """Return, for each worker, what the users did that it trains in a deal and whose home is here."""
        goal, (first, last) = self._layout(key), self._bounds[0][self.number : self.number + 2].tolist()
        users = np.arange(first, last, dtype=np.int32)
        position, worker = goal.user_position[users], goal.worker_of_users(users)
        pieces = []
        for other in range(self.workers):
            mine = np.flatnonzero(worker == other)
            pieces.append(self._taken_rows(mine[np.argsort(position[mine])].astype(np.int32)))
        return tuple(pieces) if self.workers > 1 else pieces[0]

    def take_positives(self, key: Key, *pieces: Piece) -> int:
        """Take over what the users did that this worker trains in a deal; return the bytes that came from others."""
        users = self._layout(key).users_of(self.number)
        indptr, indices, weights = _together(self._home_of(users), pieces)
        of_users, power = None, self.settings.user_balance
        if power:
            of_users = (np.maximum(_chosen(indptr, weights), 1.0) ** -power * self._scale).astype(np.float32)
        indices.flags.writeable = False  # as on one machine, so that the same machine code is used
        self._arrived = key, Positives(indptr, indices, weights, of_users)
        return sum(piece.nbytes for other, piece in enumerate(pieces) if other != self.number)

    def _own_positives(self, there: Layout) -> tuple[Positives, int]:
        if self._arrived is None:
            raise ValueError("nobody has sent what the users did")
        (_, positives), self._arrived = self._arrived, None
        return positives, self._longest

    def _made_layout(self, key: Key) -> Layout:
        if key == REST:
            return rest_layout(*self._bounds)
        return layout(key, self.shape, self.settings, self.workers)

    def _home_of(self, users: NDArray[Any]) -> NDArray[np.int64]:
        return np.searchsorted(self._bounds[0], users, side="right") - 1

    def _taken_rows(self, users: NDArray[np.int32]) -> Piece:
        """Return what some users did, who are counted from the first whose home is here."""
        start = rows.row_starts(self._home.indptr, users)

        def taken(values: Any) -> Any:
            own = np.empty(start[-1], values.dtype)
            rows.take_rows(self._home.indptr, values, users, start, own)
            return own

        weights = None if self._home.weights is None else taken(self._home.weights)
        return Piece(np.diff(start).astype(np.int32), taken(self._home.indices), weights)


def _together(
    home: NDArray[np.int64], pieces: tuple[Piece, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats | None]:
    """Return as CSR what users did, in order, from a piece of each home; ``home`` is that of each user."""
    indptr = np.zeros(len(home) + 1, np.int64)
    for other, piece in enumerate(pieces):
        indptr[1:][home == other] = piece.lengths
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], np.int32)
    weights = None if pieces[0].weights is None else np.empty(indptr[-1], np.float32)
    for other, piece in enumerate(pieces):
        own = np.flatnonzero(home == other)
        rows.put_rows(indptr, own, piece.items, indices)
        if weights is not None:
            rows.put_rows(indptr, own, piece.weights, weights)
    return indptr, indices, weights


def _chosen(indptr: NDArray[np.int64], weights: Floats | None) -> NDArray[np.int64]:
    """Return how many interactions of each row count."""
    return np.diff(indptr) if weights is None else np.asarray(marked(indptr, weights))


def _sampled(ids: IdArray, counts: NDArray[np.int64]) -> IdArray:
    """Return sorted ids, one for every so many rows."""
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
