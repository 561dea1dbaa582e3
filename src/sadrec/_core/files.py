"""Files: written whole or not at all, with a checksum, and read without running anything.

Arrays are kept as safetensors: a JSON header followed by raw numbers. Nothing in it is code, so loading one cannot run
any; the library that parses the header refuses shapes and offsets that do not fit the file.
"""

import errno
import glob
import json
import math
import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

_DTYPES = {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}
_DTYPES |= {"F32": "<f4", "F64": "<f8"}
_WITHOUT_WAITING = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_NAMES = {np.dtype(dtype).str: name for name, dtype in _DTYPES.items()}


class FileFormatError(ValueError):
    """A file is not what it should be: damaged, cut short, of another kind or of a newer version."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a new, empty file in the folder of ``path`` to write to; when the block ends, it replaces ``path``.

    Whatever happens, ``path`` holds either the old content or the whole new one. The new file has a random name, is
    never a link, gets the permissions that the process gives to new files, and is on the disk before it is renamed. An
    error inside the block removes it; what a killed process has left is removed by the next one that writes ``path``.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name the file to write")
    if path.exists() and not path.is_file():
        raise ValueError(f"{str(path)!r} is a device or a pipe, and would be replaced by a file: name a file")
    make_folder(path.parent)
    _remove_abandoned(path)
    part = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}.part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    permissions = part.stat().st_mode
    try:
        yield part
        part.chmod(permissions)  # whoever writes may put another file in the place
        _flush(part)
        part.replace(path)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(f"{str(path)!r} cannot be written: {error.strerror}") from error  # a full disk names no file
    finally:
        part.unlink(missing_ok=True)
    with suppress(OSError):  # some systems cannot open a folder
        _flush(path.parent)


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, where they are missing."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        above = (one for one in (Path(path), *Path(path).parents) if one.exists() and not one.is_dir())
        file = str(next(above, path))
        raise ValueError(f"{file!r} is a file, and a folder is needed: choose another name") from None


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file without waiting. Anything else is refused: opening a pipe may block without end."""
    try:
        handle = os.open(path, flags | _WITHOUT_WAITING, 0o640)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        raise FileNotFoundError(f"there is no file {str(path)!r}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileFormatError(f"{str(path)!r} is a folder, a pipe or a device, and a file is needed: name a file")
    return handle


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file of which there is either all or nothing."""
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def write_frame(path: str | Path, frame: Any) -> None:
    """Write a frame of polars, whole or not at all: as CSV where the name ends so, otherwise as Parquet."""
    content = BytesIO()  # what polars says of a full disk is no sentence
    (frame.write_csv if Path(path).suffix == ".csv" else frame.write_parquet)(content)
    write_whole(path, content.getvalue())


def save_figure(path: str | Path, figure: Any, **options: Any) -> None:
    """Write a figure of matplotlib, whole or not at all; the ending of the name tells the format."""
    with replacing(path) as part:
        figure.savefig(part, format=Path(path).suffix[1:] or "png", **options)


def _flush(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(path: Path) -> None:
    """Remove the unfinished files of processes of this machine that have ended."""
    prefix = f".{path.name}.{socket.gethostname()}-"
    for part in path.parent.glob(f"{glob.escape(prefix)}*.part"):
        process = part.name.removeprefix(prefix).split("-")[0]
        if process.isdecimal() and not is_running(int(process)):
            part.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether a process of this machine is still there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def fingerprint(*values: Any) -> str:
    """Return a digest that changes whenever a value, a type or a shape among arrays and plain values does.

    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3)) != fingerprint(np.arange(3.0))
    True
    """
    digest = xxhash.xxh3_128()
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        else:
            digest.update(_digested(value))
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """Return a value that JSON can hold, the same for the same value; an object becomes the name of its class.

    >>> plain({"rate": np.float32(0.5), "layers": (8, 4), "bad": float("nan")})
    {'rate': 0.5, 'layers': [8, 4], 'bad': None}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(entry) for entry in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Path):
        return str(value)
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


class Pieces(NamedTuple):
    """An array that comes a piece at a time, which no process needs to hold whole."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray[Any]]]

    def whole(self) -> NDArray[Any]:
        """Return the array."""
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *self.pieces()])


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any] | Pieces], header: Mapping[str, Any]) -> None:
    """Write arrays, a JSON header and a checksum of both, whole or not at all; the same content is the same bytes.

    The file is written here and not by the library that reads it, whose own temporary files outlive a kill.
    """
    parts = {name: array if isinstance(array, Pieces) else _as_pieces(array) for name, array in arrays.items()}
    text, end, layout = json.dumps(header), 0, dict[str, Any]()
    # The widest numbers come first, so that all are aligned.
    for name, part in sorted(parts.items(), key=lambda entry: (-entry[1].dtype.itemsize, entry[0])):
        start, end = end, end + part.dtype.itemsize * math.prod(part.shape)
        layout[name] = {"dtype": _NAMES[part.dtype.str], "shape": part.shape, "data_offsets": [start, end]}

    def beginning(checksum: str) -> bytes:
        metadata = {"__metadata__": {"checksum": checksum, "sadrec": text}}
        content = json.dumps(metadata | layout, separators=(",", ":")).encode()
        content += b" " * (-len(content) % 8)
        return len(content).to_bytes(8, "little") + content

    digest = xxhash.xxh3_128()
    digest.update(_digested(text))
    first = len(beginning(digest.hexdigest()))
    with replacing(path) as place, place.open("wb") as file:
        file.truncate(first + end)
        for name, part in sorted(parts.items()):  # the order of the checksum
            digest.update(_digested(name) + f"{part.dtype.str}{part.shape}".encode())
            file.seek(first + layout[name]["data_offsets"][0])
            for piece in part.pieces():
                content = np.ascontiguousarray(piece, part.dtype).reshape(-1).view(np.uint8).data
                digest.update(content)
                file.write(content)
        file.seek(0)
        file.write(beginning(digest.hexdigest()))


def _as_pieces(array: NDArray[Any]) -> Pieces:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return Pieces(little.dtype, little.shape, lambda: [little])


def _digested(value: Any) -> bytes:
    """Return what :func:`fingerprint` digests of a plain value."""
    return json.dumps(plain(value), sort_keys=True).encode()


def checksum_for(arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> str:
    """Return the checksum that :func:`write_arrays` would give a file."""
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    return _checksum(json.dumps(header), little)


def _checksum(header: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    return fingerprint(header, *(part for name in sorted(arrays) for part in (name, arrays[name])))


def read_arrays(path: Path, kind: str, verify: bool = True) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays, memory-mapped and read-only, and the header of a file that :func:`write_arrays` made.

    ``kind`` says what the file should be, for the error message: ``"a sadrec model"``. Everything is read and compared
    with the checksum, or, without ``verify``, only the header is read. What is something else, damaged or cut short
    raises a FileFormatError.
    """
    from safetensors import SafetensorError

    try:
        with _opened(path) as (file, metadata):
            raw = np.memmap(file, np.uint8, "r")
        text = metadata.get("sadrec")
        if text is None:
            raise FileFormatError(f"{str(path)!r} is not {kind}: its header does not name sadrec")
        header = json.loads(text)
        if not isinstance(header, dict):
            raise FileFormatError(f"{str(path)!r} is not {kind}: its header is not a mapping")
        length = int.from_bytes(raw[:8].tobytes(), "little")
        layout = json.loads(raw[8 : 8 + length].tobytes())
        arrays = {}
        for name, entry in layout.items():
            if name != "__metadata__":
                start, stop = (8 + length + offset for offset in entry["data_offsets"])
                arrays[name] = raw[start:stop].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if verify and metadata.get("checksum") != _checksum(text, arrays):
            raise FileFormatError(f"{str(path)!r} is damaged: its content does not fit its checksum")
    except (FileFormatError, FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise OSError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(
            f"{str(path)!r} cannot be read as {kind}: it is something else, damaged or cut short ({error})"
        ) from error
    return arrays, header


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], dict[str, str]]]:
    """Open a file of arrays; yield it with the metadata of its header, which was checked against its size."""
    from safetensors import safe_open

    with os.fdopen(open_regular(path), "rb") as file:
        opened = Path(f"/dev/fd/{file.fileno()}")  # the path may lead to something else by now
        with safe_open(opened if opened.exists() else path, framework="np") as checked:
            metadata = checked.metadata() or {}
        yield file, metadata


def kind_of_sadrec_file(file: IO[bytes]) -> str | None:
    """Return the kind that an opened file of :func:`write_arrays` says it is; None for any other file."""
    try:
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        start = file.read(1)
        layout = start + file.read(length - 1) if start == b"{" and length < 2**27 else b""
        return str(json.loads(json.loads(layout)["__metadata__"]["sadrec"])["kind"])
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        return None


def kind_in_words(kind: Any) -> str:
    """Return what the header of a file calls it, in words, and what reads it."""
    names = {
        "model": "a model of sadrec (SAD.load, or sadrec recommend, prefer, cycles, ...)",
        "posterior": "a posterior of sadrec (GibbsSAD.load, or sadrec posterior, or sadrec evaluate)",
    }
    return names.get(kind, f"a {kind} of sadrec")


def checksum_of(path: Path) -> str:
    """Return the checksum that a file made by :func:`write_arrays` says it has; only its header is read."""
    from safetensors import SafetensorError

    try:
        with _opened(path) as (_, metadata):
            checksum = metadata.get("checksum")
    except FileFormatError:
        raise
    except (SafetensorError, OSError) as error:
        raise FileFormatError(f"{str(path)!r} cannot be read: {error}") from error
    if not checksum:
        raise FileFormatError(f"{str(path)!r} names no checksum: is it a file of sadrec?")
    return str(checksum)
