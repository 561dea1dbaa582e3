"""Partition files among workers; the calling process holds counts and references, and no rows."""

from typing import NamedTuple

import numpy as np

from sadrec.cluster.layout import Bounds
from sadrec.cluster.scheduler import Workers
from sadrec.cluster.shuffle import IdCounts, Received, RowsRead
from sadrec.data import IdArray, ParquetFiles


class Partitioned(NamedTuple):
    """The program's view of data that workers hold."""

    bounds: tuple[Bounds, Bounds]
    interactions: int
    repeated: int  # rows that repeat a pair
    longest: int
    has_ratings: bool
    timed: bool
    digest: str

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return int(self.bounds[0][-1]), int(self.bounds[1][-1])


def partition(workers: Workers, files: ParquetFiles) -> Partitioned:
    """Have workers read files, and exchange rows until each has all interactions of its users."""
    read: list[RowsRead] = workers.get(
        [workers.call(w, "data.read", files, runs) for w, runs in enumerate(files.divided(workers.count))]
    )
    for what, types in zip(
        ("user ids", "item ids", "timestamps"), zip(*(part.types for part in read), strict=True), strict=True
    ):
        if len(set(types)) > 1:
            raise TypeError(
                f"the {what} are of several types ({', '.join(sorted(map(str, set(types))))}): make them one"
            )
    counts = [part.rows for part in read]
    cuts = _cuts([part.users for part in read], counts), _cuts([part.items for part in read], counts)
    ids = enumerate(workers.sent("data.send_ids", *cuts))
    merged = [workers.call(w, "data.merge_ids", *pieces, returns=workers.count + 1) for w, pieces in ids]
    counted: list[IdCounts] = workers.get([answer[0] for answer in merged])
    bounds = _starts([part.users for part in counted]), _starts([part.items for part in counted])
    places = enumerate(zip(*(answer[1:] for answer in merged), strict=True))
    sent = [workers.call(w, "data.send_rows", bounds, *pieces, returns=workers.count) for w, pieces in places]
    received: list[Received] = workers.get(
        [workers.call(w, "data.receive_rows", *pieces) for w, pieces in enumerate(zip(*sent, strict=True))]
    )
    rows_read, kept = sum(counts), sum(part.interactions for part in received)
    digest = f"{sum(part.digest for part in received) % 2**64:016x}-{kept}-{bounds[0][-1]}-{bounds[1][-1]}"
    longest = max(part.longest for part in received)
    timed = read[0].types[2] is not None
    return Partitioned(bounds, kept, rows_read - kept, longest, read[0].has_ratings, timed, digest)


def _starts(counts: list[int]) -> Bounds:
    return np.concatenate([[0], np.cumsum(counts)])


def _cuts(samples: list[IdArray], rows_read: list[int]) -> IdArray:
    """Return the ids that cut the rows into about equal parts, one part for each worker."""
    ids, weights = np.concatenate(samples), np.repeat(rows_read, [len(part) for part in samples])
    order = np.argsort(ids, kind="stable")
    until = np.cumsum(weights[order]) / weights.sum()
    wanted = np.arange(1, len(samples)) / len(samples)
    return np.asarray(ids[order][np.searchsorted(until, wanted)])
