"""Shared by ``compare`` and ``tune``: a fit within a time limit, and finished work kept by key."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from sadrec._core.files import fingerprint
from sadrec._core.record import Arrays, Records
from sadrec.data import Comparisons, Interactions

log = logging.getLogger(__name__)

T = TypeVar("T")
Data = Interactions | Comparisons


class OutOfTimeError(RuntimeError):
    """A model took longer than its time budget."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise :class:`OutOfTimeError` inside the block after this number of seconds.

    In the main thread of a Unix process the block is interrupted; elsewhere it runs to its end and the error comes
    then.
    """
    if seconds is None:
        yield
        return
    message = f"took longer than its budget of {seconds:g} seconds"
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def expire(number: int, frame: FrameType | None) -> None:
            raise OutOfTimeError(message)

        before = signal.signal(signal.SIGALRM, expire)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    start = time.perf_counter()
    yield
    if time.perf_counter() - start > seconds:
        raise OutOfTimeError(message)


def data_fingerprint(*parts: Data) -> str:
    """Return a digest of ids, positions and values: the same for the same data, whenever it is read."""
    arrays: list[Any] = []
    for part in parts:
        arrays += [part.users, part.items]
        if isinstance(part, Comparisons):
            arrays += [part.user_index, part.winner_index, part.loser_index, part.weight]
            arrays += [array for array in (part.tied, part.features) if array is not None]
        else:
            matrix = part.matrix
            arrays += [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data]
    return fingerprint(*arrays)


class FinishedWork:
    """Records of finished pieces in a folder, each under the digest of all it depends on; without a folder, none."""

    def __init__(self, folder: str | Path | None, kind: str) -> None:
        self._records = None if folder is None else Records(folder, kind, {})

    def load(self, made: Callable[[dict[str, Any], Arrays], T], *about: Any) -> T | None:
        """Return ``made(values, arrays)`` of a finished piece, or None.

        One that is damaged, or of which nothing can be made, counts as not there.
        """
        record = None if self._records is None else self._records.read(name := fingerprint(*about))
        if record is None:
            return None
        try:
            return made(*record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("the finished piece %s does not hold what it should (%s): computed again", name, error)
            return None

    def save(self, *about: Any, values: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Keep a piece, whole or not at all."""
        if self._records is not None:
            self._records.write(fingerprint(*about), values, arrays)


def worth_another_try(status: str, seconds: float, limit: float | None, retry: bool = True) -> bool:
    """Whether to repeat a piece of work: it failed, or it ran out of time and the limit is longer now."""
    if status == "out of time":
        return limit is None or limit > seconds
    return retry and status == "failed"


def failure(error: Exception, title: str) -> tuple[str, str]:
    """Log what went wrong with a piece of work; return its status and the error in one line."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    status = "out of time" if isinstance(error, OutOfTimeError) else "failed"
    log.warning("%s: %s (%s)", title, status, message)
    log.debug("where it failed", exc_info=True)
    return status, message
