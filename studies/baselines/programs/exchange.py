"""What a program is given, what it hands back, and the files both travel in."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRAINING = "training.npz"
SETTINGS = "settings.json"
SCORES = "scores.npy"
FACTS = "facts.json"

Settings = Mapping[str, Any]
Scores = NDArray[np.float32]
# Values of one block of users that is scored and written at a time (64 MiB of float32).
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Training:
    """The interactions a baseline is trained on: the rows of a sparse matrix, sorted, without duplicates.

    ``user_features`` and ``item_features`` have a row for every row or column of the matrix, in its order, and further
    rows for users and items without history, who are scored too.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]
    shape: tuple[int, int]
    user_features: NDArray[np.float32] | None = None
    item_features: NDArray[np.float32] | None = None

    @property
    def scored(self) -> tuple[int, int]:
        """How many users and items are scored."""
        given = zip((self.user_features, self.item_features), self.shape, strict=True)
        users, items = (size if features is None else len(features) for features, size in given)
        return users, items

    @property
    def users(self) -> NDArray[np.int32]:
        """The user of every interaction; ``indices`` has its item."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    @property
    def keys(self) -> NDArray[np.int64]:
        """Number every cell of the matrix row by row, and give the numbers of the interactions, ascending."""
        return self.users.astype(np.int64) * self.shape[1] + self.indices

    def dense(self, start: int, stop: int) -> NDArray[np.float32]:
        """Give the rows from ``start`` to ``stop`` with a 1 for every interaction and 0 elsewhere."""
        rows = np.zeros((stop - start, self.shape[1]), dtype=np.float32)
        inside = slice(int(self.indptr[start]), int(self.indptr[stop]))
        owners = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        rows[owners, self.indices[inside]] = 1
        return rows


@dataclass(frozen=True)
class Fitted:
    """What a program has learnt: the scores of the users from ``start`` to ``stop``, and what it learnt from."""

    scores: Callable[[int, int], NDArray[Any]]
    trained_on: str
    libraries: tuple[str, ...]


def write_training(folder: Path, training: Training) -> None:
    """Write ``training.npz``: plain arrays, no pickle."""
    given = {"user_features": training.user_features, "item_features": training.item_features}
    features: dict[str, Any] = {name: array for name, array in given.items() if array is not None}
    np.savez(
        folder / TRAINING,
        indptr=training.indptr,
        indices=training.indices,
        data=training.data,
        shape=np.asarray(training.shape, dtype=np.int64),
        **features,
    )


def read_training(folder: Path) -> Training:
    """Read ``training.npz``."""
    with np.load(folder / TRAINING, allow_pickle=False) as file:
        users, items = (int(size) for size in file["shape"])
        features = (file.get(name) for name in ("user_features", "item_features"))
        return Training(file["indptr"], file["indices"], file["data"], (users, items), *features)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` so that the file is either complete or not there."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(value, indent=1), encoding="utf-8")
    unfinished.replace(path)


def write_scores(folder: Path, fitted: Fitted, shape: tuple[int, int]) -> None:
    """Write ``scores.npy`` block by block; it appears under its name when it is complete.

    Raises
    ------
    FloatingPointError
        When a score is not a finite number.
    """
    users, items = shape
    unfinished = folder / (SCORES + ".part")
    file = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.float32, shape=shape)
    step = max(1, _BLOCK // max(1, items))
    for start in range(0, users, step):
        block = np.asarray(fitted.scores(start, min(users, start + step)), dtype=np.float32)
        if not np.isfinite(block).all():
            raise FloatingPointError("some scores are not finite: training diverged; lower the learning rate")
        file[start : start + step] = block
    file.flush()
    del file
    unfinished.replace(folder / SCORES)


def carry_out(fit: Callable[[Training, Settings], Fitted], folder: Path) -> None:
    """Read training data and settings from ``folder``, fit, and write scores and facts there."""
    training = read_training(folder)
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    began = time.perf_counter()
    fitted = fit(training, settings)
    trained = time.perf_counter()
    write_scores(folder, fitted, training.scored)
    facts = {
        "trained_on": fitted.trained_on,
        "versions": {library: version(library) for library in ("numpy", *fitted.libraries)},
        "fit_seconds": trained - began,
        "score_seconds": time.perf_counter() - trained,
    }
    write_json(folder / FACTS, facts)
