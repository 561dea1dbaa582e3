"""The log of answers: one JSON line per answer, which ``sadrec fit`` reads as comparisons.

Several workers append to the same file, one at a time. What was only written in part, since the disk is full, is taken
back: a request is in the file with all its lines, or with none. A file that was moved away (by logrotate, or by another
worker) is noticed before the next write, and a new one is begun; what is written meanwhile goes to the file that was
moved.
"""

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from sadrec._core.files import open_regular


class EventLog:
    """A log of answers, rotated at ``most_bytes``."""

    def __init__(self, path: str | Path, most_bytes: int = 0) -> None:
        self.path = Path(path)
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._file: int | None = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._reopen()

    def append(self, events: list[dict[str, Any]]) -> None:
        """Append answers: all of them, or none if the system raises an error."""
        lines = b"".join(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE) for event in events)
        with self._lock:
            if self._moved():
                self._reopen()
            if self.most_bytes and os.fstat(self._handle).st_size + len(lines) > self.most_bytes:
                self._put_aside()
            handle = self._handle
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                size = os.fstat(handle).st_size
                # A line that was cut by a killed machine would swallow the next one.
                if size and os.pread(handle, 1, size - 1) != b"\n":
                    lines = b"\n" + lines
                try:
                    while lines:  # the system may take fewer bytes at a time when the disk is nearly full
                        lines = lines[os.write(handle, lines) :]
                except OSError:
                    os.ftruncate(handle, size)
                    raise
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file, unless a write to it does not come to an end."""
        if self._lock.acquire(timeout=1.0):
            with suppress(OSError):
                if self._file is not None:
                    os.close(self._file)
            self._file = None
            self._lock.release()

    @property
    def _handle(self) -> int:
        if self._file is None:
            self._reopen()
        assert self._file is not None
        return self._file

    def _reopen(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._file = open_regular(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR)

    def _moved(self) -> bool:
        if self._file is None:
            return True
        try:
            there, ours = self.path.stat(), os.fstat(self._file)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)

    def _put_aside(self) -> None:
        """Rotate the file, unless another worker just did."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            if not self._moved() and os.fstat(self._handle).st_size:
                stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
                for number in range(1000):
                    aside = self.path.with_name(f"{self.path.stem}-{stamp}-{number:03d}{self.path.suffix}")
                    if not aside.exists():
                        self.path.rename(aside)
                        break
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._reopen()
