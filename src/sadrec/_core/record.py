"""Records of interrupted work with their identity, in a folder that one process uses at a time.

A record is a file with plain values and arrays, an identity (what was asked, of which data) and a checksum. Training
checkpoints, draws of the sampler, finished pieces of a comparison, a search or a study differ only in what they keep.
"""

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sadrec._core.files import FileFormatError, make_folder, plain, read_arrays, write_arrays, write_whole

logger = logging.getLogger("sadrec")

FORMAT = 1
Arrays = dict[str, NDArray[Any]]


class CheckpointError(ValueError):
    """The folder belongs to other data or other settings, or another process uses it."""


class Records:
    """The records of one kind ("checkpoint", "draws", "comparison") in a folder, which is made when missing.

    ``identity`` is what the results depend on (settings, fingerprints of the data), in plain values.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(folder, "comparison", {"seed": 1})
    ...     records.write("first", {"accuracy": 0.5})
    ...     records.read("first"), records.read("second")
    (({'accuracy': 0.5}, {}), None)
    """

    def __init__(self, folder: str | Path, kind: str, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        make_folder(folder)
        self.kind = kind
        self.identity = plain(identity)

    def path(self, name: str) -> Path:
        """Return the file of a record."""
        return self.folder / f"{name}.{self.kind}"

    def names(self) -> list[str]:
        """Return the names of the records there are, in order."""
        return sorted(path.stem for path in self.folder.glob(f"*.{self.kind}") if not path.name.startswith("."))

    def write(self, name: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Keep plain values and arrays, whole or not at all."""
        header = {"kind": self.kind, "format": FORMAT, "identity": self.identity, "values": plain(values)}
        write_arrays(self.path(name), arrays or {}, header)

    def read(self, name: str) -> tuple[dict[str, Any], Arrays] | None:
        """Return the values and (memory-mapped) arrays of a record; None when it is not there, or damaged.

        One that belongs to something else raises a CheckpointError.
        """
        path = self.path(name)
        try:
            arrays, header = read_arrays(path, f"a {self.kind} of sadrec")
            if header.get("kind") != self.kind or header.get("format") != FORMAT:
                raise FileFormatError(f"{str(path)!r} is not a {self.kind} of this version of sadrec")
            values = header["values"]
            if not isinstance(values, dict):
                raise FileFormatError(f"{str(path)!r} holds no values")
        except FileNotFoundError:
            return None
        except (FileFormatError, KeyError) as error:
            logger.warning("%s; what it held is computed again", error)
            return None
        if header.get("identity") != self.identity:
            different = ", ".join(differences(header.get("identity"), self.identity))
            raise CheckpointError(
                f"{str(path)!r} belongs to another run ({different}): give another folder, or delete this one to "
                "start again"
            )
        return values, arrays

    def remove(self, name: str) -> None:
        """Delete a record."""
        self.path(name).unlink(missing_ok=True)


def differences(other: Any, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Name the differences of two identities: settings with both values, data by name alone."""
    for name, value in wanted.items():
        theirs = other.get(name) if isinstance(other, Mapping) else None
        if isinstance(value, Mapping):
            yield from differences(theirs, value)
        elif theirs != value:
            short = len(f"{theirs}{value}") < 30
            yield f"{name} was {theirs!r} and is {value!r}" if short else f"another {name}"


def discard(folder: str | Path) -> None:
    """Remove a folder of records, unless another process uses it."""
    if Path(folder).is_dir():
        with suppress(CheckpointError), locked(folder):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold a folder for this process, or raise a CheckpointError; the lock goes with the process, however it ends."""
    path = Path(folder) / ".lock"
    make_folder(folder)
    owner = path.with_name(".lock-owner")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        _hold(lock)
    except (BlockingIOError, PermissionError):  # as POSIX and Windows say that another process holds it
        os.close(lock)
        who = owner.read_text() if owner.is_file() else "unknown"
        raise CheckpointError(
            f"the folder {str(folder)!r} is in use by another process (id {who}): wait for it, or give another folder"
        ) from None
    try:
        with suppress(OSError):  # it only tells others who holds the folder, and the disk may be full
            write_whole(owner, str(os.getpid()))
        yield
    finally:
        with suppress(OSError):  # the folder may be gone; what went wrong in the block is what is raised
            owner.unlink()
        _release(lock)  # the empty file stays: another process may be about to lock it


if sys.platform == "win32":
    import msvcrt

    def _hold(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _release(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
        os.close(file)

else:
    import fcntl

    def _hold(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)  # closing does not do it while a fork has the file open
        os.close(file)
