"""A lock between processes, held through a file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

logger = logging.getLogger(__name__)


@contextmanager
def file_lock(path: Path) -> Iterator[int]:
    """Wait until no other process holds the lock file ``path``, and hold it inside the ``with`` block.

    The lock goes when the process goes, however it ends; the empty file stays. The block is given the lock's file
    descriptor: a process that inherits it holds the lock too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if not _take(file, wait=False):
            logger.info("waiting for another process that holds %s", path)
            _take(file, wait=True)
        yield file.fileno()


if sys.platform == "win32":
    import msvcrt
    import time

    def _take(file: IO[bytes], wait: bool) -> bool:
        while True:
            try:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
                time.sleep(0.5)

else:
    import fcntl

    def _take(file: IO[bytes], wait: bool) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
