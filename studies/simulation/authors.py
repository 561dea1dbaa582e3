"""The simulation of the paper's authors, as they published it."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import Comparisons
from sadrec.data import Simulation

_DAMAGE = (
    ValueError, OSError, EOFError, AttributeError, RuntimeError, MemoryError, OverflowError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_MISSING = 3  # the stream of random numbers that decides what is missing


def read_simulation(path: str | Path, *, missing: float = 0.0, seed: int = 0) -> Simulation:
    """Read a simulation of the paper's authors.

    Parameters
    ----------
    path
        A .npz file with the arrays XI0 (factors, users), H0 and T0 (factors, items), and Obs0 (users,
        items, items): 1 where the item of the row was preferred, -1 where the other was, 0 where
        nothing is known.
    missing
        Share of the observations to leave out, at random.
    seed
        Seed of that choice.
    """
    arrays = _load(Path(path))
    xi, eta, tau = (np.ascontiguousarray(arrays[name].T, dtype=np.float64) for name in ("XI0", "H0", "T0"))
    observed = arrays["Obs0"]
    users, items = len(xi), len(eta)
    if tau.shape != eta.shape or xi.shape[1] != eta.shape[1] or observed.shape != (users, items, items):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"the shapes in {path} do not fit each other: {shapes}")
    if not np.isin(observed, (-1, 0, 1)).all() or (observed != -observed.transpose(0, 2, 1)).any():
        raise ValueError(f"Obs0 in {path} must hold -1, 0 and 1 only, with Obs0[u, j, i] = -Obs0[u, i, j]")
    one, other = np.triu_indices(items, 1)
    outcome = observed[:, one, other].ravel()
    rows = np.flatnonzero(outcome)
    if left_out := round(missing * len(rows)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, _MISSING])))
        rows = rows[np.sort(np.argsort(rng.random(len(rows)), kind="stable")[: len(rows) - left_out])]
    user, pair = np.divmod(rows, len(one))
    won, first, second = outcome[rows] > 0, one[pair], other[pair]
    sides = np.where(won, first, second), np.where(won, second, first)
    stated = Comparisons.from_indices(user, *sides, users=np.arange(users), items=np.arange(items))
    return Simulation(stated, xi, eta, tau)


def _load(path: Path) -> dict[str, NDArray[Any]]:
    names = ("XI0", "H0", "T0", "Obs0")
    try:
        # opened here, as NumPy does not close a file that it cannot read
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if missing := set(names) - set(archive.files):
                raise ValueError(f"it has no arrays {', '.join(sorted(missing))}; it has {', '.join(archive.files)}")
            return {name: archive[name] for name in names}
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except _DAMAGE as error:
        raise ValueError(f"{path} is not a simulation: {error}") from None
