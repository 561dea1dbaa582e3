"""Files of named arrays: safetensors, written whole or not at all, read without running anything.

A safetensors file is a JSON header followed by raw numbers. Nothing in it is code, so loading one cannot run any;
the library that parses the header refuses shapes and offsets that do not fit the file.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES = {
    "F32": "<f4",
    "F64": "<f8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
}


class FileFormatError(ValueError):
    """A file is not what it should be: damaged, cut short, of another kind or of a newer version."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a JSON header so that ``path`` holds either the old file or the whole new one.

    The bytes go to a temporary file beside it, are flushed to the disk, and the file is renamed.
    """
    from safetensors.numpy import save_file

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        save_file(plain, part, metadata={"sadrec": json.dumps(header)})
        with part.open("rb") as written:
            os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: Path, kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays, memory-mapped and read-only, and the header of a file that :func:`write_arrays` made.

    Parameters
    ----------
    path
        The file.
    kind
        What the file should be, for the error message, e.g. ``"a sadrec model"``.

    Raises
    ------
    FileFormatError
        When the file is something else, damaged or cut short.
    FileNotFoundError
        When there is none.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    try:
        with safe_open(path, framework="np") as checked:  # checks the header against the size of the file
            text = (checked.metadata() or {}).get("sadrec")
        if text is None:
            raise FileFormatError(f"{str(path)!r} is not {kind}: its header does not name sadrec")
        header = json.loads(text)
        if not isinstance(header, dict):
            raise FileFormatError(f"{str(path)!r} is not {kind}: its header is not a mapping")
        raw = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(raw[:8].tobytes(), "little")
        layout = json.loads(raw[8 : 8 + length].tobytes())
        arrays = {}
        for name, entry in layout.items():
            if name != "__metadata__":
                start, stop = (8 + length + offset for offset in entry["data_offsets"])
                arrays[name] = raw[start:stop].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    except FileFormatError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        raise FileFormatError(
            f"{str(path)!r} is not {kind}, or it is damaged or cut short ({error}); fit the model again or fetch "
            "the file again"
        ) from error
    return arrays, header
