"""Encode a table of features as a matrix: learnt on the rows of the training data, then the same for every row."""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec._core.check import outside
from sadrec._core.types import Doubles
from sadrec.data import DataWarning
from sadrec.data.ids import Ids
from sadrec.features.table import Features, FeatureTable, Numbers, Unnamed, Words

logger = logging.getLogger("sadrec")

_SHOWN = 5
BENDS = 9
"""At how many quantiles the effect of a number may bend."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Columns of numbers: a standardised one is ``z = (x - mean) / scale``, and 0 where x is missing.

    Beside z stands ``max(z - bend, 0)`` for each bend of a column, less what it is for the mean.
    """

    names: list[str]
    mean: Doubles
    scale: Doubles
    bends: Doubles  # (bends, 2): the number of a column, and where it bends

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        column, at = self.bends[:, 0].astype(np.int64), self.bends[:, 1]
        where = self.mean[column] + at * self.scale[column]
        return self.names + [f"{self.names[c]}>{x:.4g}" for c, x in zip(column.tolist(), where.tolist(), strict=True)]

    def encode(self, part: Numbers) -> Any:
        """Return the columns, CSR."""
        place = {name: number for number, name in enumerate(part.names)}
        values = part.values[:, [place[name] for name in self.names]]
        z = np.nan_to_num((values - self.mean) / self.scale, nan=0.0)
        at = self.bends[:, 1]
        bent = np.maximum(z[:, self.bends[:, 0].astype(np.int64)] - at, 0) - np.maximum(-at, 0)
        return sp.csr_matrix(np.hstack((z, bent)))


def _bends(part: Numbers, values: Doubles) -> Doubles:
    """Return where columns of standardised numbers bend: at deciles, where there are enough different ones."""
    bends = [np.empty((0, 2))]
    for column in range(values.shape[1] if part.bent else 0):
        own = values[:, column][~np.isnan(values[:, column])]
        if len(np.unique(own)) > BENDS:
            at = np.unique(np.quantile(own, np.arange(1, BENDS + 1) / (BENDS + 1)))
            at = at[(at > own.min()) & (at < own.max())]
            bends.append(np.column_stack((np.full(len(at), float(column)), at)))
    return np.concatenate(bends)


@dataclass(frozen=True, eq=False)
class Listed:
    """A column of categories or tags: one column for each known word, the same number wherever it is.

    How many words a row has then tells something, too: scaled row by row, new films of MovieLens 1M were ranked worse.
    """

    name: str
    levels: list[str]
    value: float  # of a word: the squares of a row with words sum to 1 in the mean

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"{self.name}={level}" for level in self.levels]

    def encode(self, part: Words) -> Any:
        """Return the columns, CSR; unknown words have none."""
        place = {level: number for number, level in enumerate(part.levels)}
        level_of = np.array([place.get(level, -1) for level in self.levels], np.int64)
        if not len(part.levels):
            return sp.csr_matrix((part.rows.shape[0], len(self.levels)))
        rows = sp.csr_matrix(part.rows[:, np.maximum(level_of, 0)] @ sp.diags_array(self.value * (level_of >= 0)))
        rows.eliminate_zeros()
        return rows


@dataclass(frozen=True, eq=False)
class Chosen:
    """Columns of a sparse matrix: those that are not empty, divided by one number."""

    width: int
    kept: NDArray[np.int64]
    scale: float

    @property
    def columns(self) -> list[str]:
        """The names of the columns: their numbers."""
        return [str(column) for column in self.kept.tolist()]

    def encode(self, part: Unnamed) -> Any:
        """Return the columns, CSR."""
        if part.rows.shape[1] != self.width:
            raise ValueError(f"a matrix of features has {part.rows.shape[1]} columns, and the first had {self.width}")
        return sp.csr_matrix(part.rows[:, self.kept] / self.scale)


Code = Scaled | Listed | Chosen


@dataclass(frozen=True, eq=False)
class Encoder:
    """Encodes tables of features as matrices with a row for each id; its training rows are not kept.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"item": ["tea", "ale", "gin"], "price": [1.0, 3.0, 5.0], "kind": ["hot", "cold", "cold"]})
    >>> features = Features(frame, minimum=1)
    >>> encoder = Encoder.fit(features.table(["tea", "ale", "gin"], "item"), Ids(["tea", "ale"], "item"), 1)
    >>> encoder.columns
    ['price', 'kind=cold', 'kind=hot']
    >>> encoder.encode(features.table([], "item")).toarray()
    array([[-1.,  0.,  1.],
           [ 1.,  1.,  0.],
           [ 3.,  1.,  0.]])
    """

    what: str  # "item" or "user"
    codes: tuple[Code, ...]

    @staticmethod
    def fit(table: FeatureTable, trained: Ids, minimum: int = 2) -> "Encoder":
        """Learn from the rows whose ids are ``trained``; columns that are the same in all of them are left out."""
        what = table.ids.what
        trained_rows = np.flatnonzero(trained.known(table.ids.array))
        if not len(trained_rows):
            raise ValueError(
                f"{what}_features names none of the {len(trained):,} {what}s of the data, such as "
                f"{trained.array[0].item()!r}: it has ids such as {table.ids.array[0].item()!r}{table.source}"
            )
        codes: list[Code] = []
        dropped: list[str] = []
        for part in table.parts:
            if isinstance(part, Numbers):
                values = part.values[trained_rows]
                count = np.maximum((~np.isnan(values)).sum(axis=0), 1)
                most = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
                unit = np.exp2(np.floor(np.log2(np.where(most > 0, most, 1.0))))  # no square overflows, nor vanishes
                mean = np.nansum(values / unit, axis=0) / count * unit
                scale = np.sqrt(np.nansum(((values - mean) / unit) ** 2, axis=0) / count) * unit
                kept = scale > 1e-9 * np.maximum(np.abs(mean), 1e-300)
                dropped += [name for name, keep in zip(part.names, kept, strict=True) if not keep]
                names = [name for name, keep in zip(part.names, kept, strict=True) if keep]
                if names:
                    mean, scale = mean[kept], scale[kept]
                    codes.append(Scaled(names, mean, scale, _bends(part, (values[:, kept] - mean) / scale)))
            else:
                rows = part.rows[trained_rows]
                count = np.bincount(rows.indices, minlength=rows.shape[1])
                if isinstance(part, Words):
                    _warn_of_numbers(part, what)
                    chosen = np.flatnonzero((count >= minimum) & (count < len(trained_rows)))
                    if len(chosen):
                        words = np.diff(rows[:, chosen].indptr)
                        value = float(words[words > 0].mean()) ** -0.5
                        codes.append(Listed(part.name, [part.levels[place] for place in chosen], value))
                    else:
                        dropped.append(part.name)
                else:
                    chosen = np.flatnonzero(count >= min(minimum, len(trained_rows)))
                    if len(chosen):
                        size = float(np.sqrt(np.mean(rows.multiply(rows).sum(axis=1))))
                        codes.append(Chosen(rows.shape[1], chosen, size or 1.0))
        if dropped:
            others = f" and {len(dropped) - _SHOWN} more" if len(dropped) > _SHOWN else ""
            logger.info(
                "%s_features: %s%s left out: empty, the same for all in the training data, or different for each",
                what,
                ", ".join(map(repr, dropped[:_SHOWN])),
                others,
            )
        if not codes:
            raise ValueError(
                f"no column of {what}_features tells two {what}s of the data apart (each is empty, the same for all, "
                "or different for each): leave it out"
            )
        return Encoder(what, tuple(codes))

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for code in self.codes for name in code.columns]

    def encode(self, table: FeatureTable, *, partly: bool = False) -> Any:
        """Return a CSR matrix with the rows of a table; ``partly`` takes columns that it lacks as not known."""
        rows = len(table.ids)
        blocks = []
        for code in self.codes:
            part = self._part(code, table, partly)
            width = len(code.columns)
            blocks.append(sp.csr_matrix((rows, width)) if part is None else code.encode(part))
        return sp.csr_matrix(sp.hstack(blocks, format="csr"))

    def _part(self, code: Code, table: FeatureTable, partly: bool) -> Any:
        """Return the part of a table that a code encodes, or None."""
        if isinstance(code, Chosen):
            blocks = [part for part in table.parts if isinstance(part, Unnamed)]
            if not blocks:
                raise ValueError(f"{self.what}_features was a sparse matrix of {code.width} columns: give such rows")
            return blocks[0]
        own: dict[str, Doubles] = {}
        for part in table.parts:
            if isinstance(part, Numbers):
                own |= {name: part.values[:, place] for place, name in enumerate(part.names)}
        empty = {name for name, values in own.items() if np.isnan(values).all()}  # of any type
        if isinstance(code, Listed):
            words = [part for part in table.parts if isinstance(part, Words) and part.name == code.name]
            if not words and not partly and code.name not in empty:
                self._refuse(code.name, table)
            return words[0] if words else None
        empty |= {part.name for part in table.parts if isinstance(part, Words) and not part.levels}
        for name in code.names:
            if name not in own:
                if not partly and name not in empty:
                    self._refuse(name, table)
                own[name] = np.full(len(table.ids), np.nan)
        return Numbers(code.names, np.column_stack([own[name] for name in code.names]))  # in their order

    def _refuse(self, name: str, table: FeatureTable) -> None:
        there = [column for part in table.parts for column in _names(part)]
        raise ValueError(
            f"{self.what}_features has no column {name!r} of the kind that the model was fitted with: give it, empty "
            f"where it is not known (there are {', '.join(map(repr, there[:20])) or 'none'})"
        )

    def encode_one(self, values: Any, name: str = "features") -> Any:
        """Return the row of one item or user: a mapping from names to values, a list of tags or a row of numbers."""
        table = Features({0: _row(values, name)}).table([0], self.what)
        if isinstance(values, Mapping):
            words = {code.name for code in self.codes if isinstance(code, Listed)}
            numbers = {column for code in self.codes if isinstance(code, Scaled) for column in code.names}
            for part in table.parts:
                allowed = numbers if isinstance(part, Numbers) else words
                nothing = [column for column, value in values.items() if value is None]
                if unknown := [column for column in _names(part) if column not in allowed and column not in nothing]:
                    given = f": {str(values[unknown[0]])[:60]!r}" if unknown[0] in values else ""  # else one of a list
                    raise ValueError(
                        f"{name} has {unknown[0]!r}{given}, but the model knows the numbers {_listed(numbers)} and the "
                        f"categories or tags {_listed(words)}"
                    )
        return self.encode(table, partly=isinstance(values, Mapping))

    # -- files --------------------------------------------------------------------------------------------------------

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain values and arrays."""
        codes: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for number, code in enumerate(self.codes):
            if isinstance(code, Scaled):
                codes.append({"kind": "numbers", "names": code.names})
                arrays |= {f"{number}_mean": code.mean, f"{number}_scale": code.scale, f"{number}_bends": code.bends}
            elif isinstance(code, Listed):
                codes.append({"kind": "words", "name": code.name, "levels": code.levels, "value": code.value})
            else:
                codes.append({"kind": "matrix", "width": code.width, "scale": code.scale})
                arrays[f"{number}_kept"] = code.kept
        return {"what": self.what, "codes": codes}, arrays

    @staticmethod
    def unpack(values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Encoder":
        """Return what :meth:`pack` gave, refusing what does not fit."""
        codes: list[Code] = []
        for number, entry in enumerate(values["codes"]):
            if entry["kind"] == "numbers":
                names = _texts(entry["names"])
                mean, scale = (_finite(arrays[f"{number}_{part}"], (len(names),)) for part in ("mean", "scale"))
                if not (scale > 0).all():
                    raise ValueError("the scale of a feature is not above 0")
                bends = _finite(arrays[f"{number}_bends"], (len(arrays[f"{number}_bends"]), 2))
                if not np.isin(bends[:, 0], np.arange(len(names))).all():
                    raise ValueError("the bends of features name columns that do not exist")
                codes.append(Scaled(names, mean, scale, bends))
            elif entry["kind"] == "words":
                value = float(entry["value"])
                if not 0 < value <= 1:
                    raise ValueError("the words of a feature do not count between 0 and 1")
                codes.append(Listed(_texts([entry["name"]])[0], _texts(entry["levels"]), value))
            elif entry["kind"] == "matrix":
                kept, width, size = arrays[f"{number}_kept"], int(entry["width"]), float(entry["scale"])
                if kept.dtype != np.int64 or kept.ndim != 1 or width <= 0 or not 0 < size < np.inf:
                    raise ValueError("the columns of a matrix of features do not fit")
                if outside(kept, width) is not None:
                    raise ValueError("the columns of a matrix of features do not exist")
                codes.append(Chosen(width, np.array(kept), size))
            else:
                raise ValueError(f"features of the unknown kind {entry['kind']!r}")
        if not codes or values["what"] not in ("item", "user"):
            raise ValueError("features without columns")
        return Encoder(values["what"], tuple(codes))


def _warn_of_numbers(part: Words, what: str) -> None:
    """Warn that a column of text is mostly numbers: a single "n/a" turns a column of years into categories."""
    if np.diff(part.rows.indptr).max(initial=0) > 1:  # tags
        return
    texts = [level for level in part.levels if not _is_number(level)]
    if 0 < len(texts) <= len(part.levels) // 10:
        warnings.warn(
            f"{what}_features: most of the column {part.name!r} are numbers, and {texts[0]!r} is not, so that each of "
            f"its {len(part.levels):,} values is a category: leave such cells empty to have numbers",
            DataWarning,
            stacklevel=2,
        )


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _row(values: Any, name: str) -> Any:
    if isinstance(values, Mapping | list | tuple | set | frozenset | np.ndarray):
        return values
    raise TypeError(f"{name} must be a mapping from names to values, a list of tags or numbers, not {values!r}")


def _names(part: Any) -> list[str]:
    return part.names if isinstance(part, Numbers) else [part.name] if isinstance(part, Words) else []


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:20])) or "(none)"


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("the names of features are not text")
    return values


def _finite(array: Any, shape: tuple[int, ...]) -> Doubles:
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"features are not made of {shape} finite numbers")
    return np.array(array)
