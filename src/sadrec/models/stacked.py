"""Rows that lie in several arrays one after another, such as shards of a model, asked for as if they were one."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._types import Floats, Positions


class _Stacked:
    """Where rows are: which part has a row, and where in it."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self._start = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])])
        self.shape = int(self._start[-1]), int(parts[0].shape[1])
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def _positions(self, key: Any) -> NDArray[np.int64]:
        """Return the positions that an index means."""
        if isinstance(key, slice | range):
            return np.arange(*key.indices(len(self))) if isinstance(key, slice) else np.asarray(key, np.int64)
        asked = np.asarray(key)
        if asked.dtype == np.bool_:
            return np.flatnonzero(asked)
        asked = asked.astype(np.int64)
        if asked.size and not -len(self) <= asked.min() <= asked.max() < len(self):
            raise IndexError(f"there is no row {asked.max()} of {len(self)}")
        return np.where(asked < 0, asked + len(self), asked)

    def _by_part(self, positions: NDArray[np.int64]) -> list[tuple[Any, NDArray[np.intp], Positions]]:
        """Return each part that is needed, which of the positions are in it, and where there."""
        number = np.searchsorted(self._start, positions, side="right") - 1
        chosen = ((part, np.flatnonzero(number == part)) for part in np.unique(number).tolist())
        return [(self.parts[part], mine, positions[mine] - self._start[part]) for part, mine in chosen]


class StackedRows(_Stacked):
    """A matrix of numbers whose rows lie in several arrays; what is asked for is copied, the rest stays where it is.

    >>> rows = StackedRows([np.zeros((2, 3), np.float32), np.ones((1, 3), np.float32)])
    >>> rows[[2, 0]].tolist(), rows[2].tolist(), rows.shape
    ([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [1.0, 1.0, 1.0], (3, 3))
    """

    @property
    def dtype(self) -> Any:
        """The type of the numbers."""
        return self.parts[0].dtype

    def __getitem__(self, key: Any) -> Floats:
        if isinstance(key, tuple):
            return np.asarray(self)[key]
        positions = self._positions(key)
        answer = np.empty((positions.size, self.shape[1]), self.dtype)
        for part, mine, places in self._by_part(positions.reshape(-1)):
            answer[mine] = part[places]
        return answer.reshape(*positions.shape, self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows, in memory."""
        return np.concatenate(self.parts).astype(self.dtype if dtype is None else dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "parts":
            raise AttributeError(name)
        return getattr(np.asarray(self), name)  # a sum, a mean, ...: over all rows


class StackedMatrix(_Stacked):
    """A sparse matrix whose rows lie in several CSR matrices; some rows are a CSR matrix."""

    has_sorted_indices = True

    @property
    def nnz(self) -> int:
        """How many entries there are."""
        return sum(part.nnz for part in self.parts)

    @cached_property
    def whole(self) -> Any:
        """All rows, in memory."""
        return sp.vstack(self.parts, "csr")

    def items_of(self, row: int) -> Any:
        """Return the columns of one row."""
        part = int(np.searchsorted(self._start, row, side="right")) - 1
        matrix, place = self.parts[part], row - self._start[part]
        return matrix.indices[matrix.indptr[place] : matrix.indptr[place + 1]].astype(np.int32, copy=False)

    def __getitem__(self, key: Any) -> Any:
        positions = self._positions(key).reshape(-1)
        found = self._by_part(positions)
        if not found:
            return sp.csr_matrix((0, self.shape[1]), dtype=np.float32)
        order = np.concatenate([mine for _, mine, _ in found])
        rows = sp.vstack([part[places] for part, _, places in found], "csr")
        return rows if (np.diff(order) > 0).all() else rows[np.argsort(order)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "parts":
            raise AttributeError(name)
        return getattr(self.whole, name)
