"""Small result files, one per finished piece of work, so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.data import Interactions

Arrays = Mapping[str, NDArray[Any]]
FORMAT = 2


def fingerprint(*parts: Interactions) -> str:
    """Return a digest of ids, positions and ratings: the same for the same data, whenever it is read.

    Examples
    --------
    >>> data = Interactions.from_csr(np.eye(3))
    >>> fingerprint(data) == fingerprint(Interactions.from_csr(np.eye(3)))
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        matrix = part.matrix
        pieces = (part.users, part.items, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
        for array in pieces:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def key_of(*parts: Any) -> str:
    """Return a short digest of plain values (see :func:`sadrec.evaluation._fitting.plain`)."""
    text = json.dumps(parts, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is either complete or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Store:
    """Records by key, in a folder or (without one) in memory.

    Parameters
    ----------
    folder
        Where ``KEY.json`` and, for records with arrays, ``KEY.npz`` are kept; made when first needed.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None and self._folder.exists() and not self._folder.is_dir():
            raise ValueError(f"{self._folder} is a file; results need a folder")

    def load(self, key: str) -> tuple[dict[str, Any], Arrays] | None:
        """Return a finished record and its arrays, or ``None``; a damaged one counts as not there."""
        if self._folder is None:
            return None
        try:
            record = json.loads((self._folder / f"{key}.json").read_text())
            if not isinstance(record, dict) or record.get("format") != FORMAT:
                return None
            if not record["arrays"]:
                return record, {}
            with np.load(self._folder / f"{key}.npz", allow_pickle=False) as file:
                return record, {name: file[name] for name in record["arrays"]}
        except (OSError, ValueError, KeyError):
            return None

    def save(self, key: str, record: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Keep a record; its JSON file is written last and says that it is complete."""
        if self._folder is None:
            return
        arrays = arrays or {}
        if arrays:
            from io import BytesIO

            buffer = BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **arrays)
            write_atomically(self._folder / f"{key}.npz", buffer.getvalue())
        whole = {"format": FORMAT, **record, "arrays": sorted(arrays)}
        write_atomically(self._folder / f"{key}.json", json.dumps(whole, indent=1, allow_nan=False).encode())
