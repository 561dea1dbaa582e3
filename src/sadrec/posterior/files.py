"""A posterior as a file: draws, ids and what was observed, without any code in it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._files import FileFormatError, read_arrays, write_arrays
from sadrec.data.ids import Ids
from sadrec.models import ModelFileError
from sadrec.models.files import pack_ids, unpack_ids, unpack_seen
from sadrec.posterior.draws import Draws
from sadrec.posterior.settings import GibbsSettings

FORMAT = 1
_KIND = "a sadrec posterior"
Observed = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]
"""User, winner and loser of every comparison learnt from, and the root of its precision."""


def save_posterior(
    path: str | Path, draws: Draws, users: Ids, items: Ids, observed: Observed, seen: Any, settings: GibbsSettings
) -> None:
    """Write everything, whole or not at all."""
    tensors: dict[str, NDArray[Any]] = {
        "user_draws": draws.user,
        "item_draws": draws.item,
        "rival_draws": draws.rival,
        "scale_draws": draws.scales,
    }
    for name, column in zip(("user", "winner", "loser", "root"), observed, strict=True):
        tensors[f"observed_{name}"] = column
    kinds = {"users": pack_ids("users", users.array, tensors), "items": pack_ids("items", items.array, tensors)}
    if seen is not None:
        tensors["seen_indptr"], tensors["seen_indices"] = seen.indptr.astype(np.int64), seen.indices
        tensors["seen_data"] = seen.data
    header = {"kind": "posterior", "format": FORMAT, "ids": kinds, "settings": settings.as_dict()}
    write_arrays(Path(path), tensors, header)


def load_posterior(path: str | Path) -> tuple[Draws, Ids, Ids, Observed, Any, GibbsSettings]:
    """Return what :func:`save_posterior` wrote, checked; draws stay on the disk until they are used.

    Raises
    ------
    ModelFileError
        When the file is not a posterior that this version can read.
    """
    try:
        tensors, header = read_arrays(Path(path), _KIND)
        if header.get("kind") != "posterior":
            raise ModelFileError(f"{str(path)!r} is not {_KIND} but {header.get('kind')!r}")
        if header.get("format") != FORMAT:
            raise ModelFileError(
                f"{str(path)!r} has the format {header.get('format')!r}, this version reads {FORMAT}: update sadrec"
            )
        draws = Draws(*(tensors[f"{name}_draws"] for name in ("user", "item", "rival", "scale")))
        settings = GibbsSettings(**header["settings"])
        n, m = _check_draws(draws, settings.factors)
        users = Ids(unpack_ids("users", header["ids"]["users"], tensors, n), "user")
        items = Ids(unpack_ids("items", header["ids"]["items"], tensors, m), "item")
        columns = [np.array(tensors[f"observed_{name}"]) for name in ("user", "winner", "loser", "root")]
        for column, size in zip(columns, (n, m, m), strict=False):
            if column.dtype != np.int32 or column.ndim != 1 or len(column) != len(columns[0]):
                raise ValueError("the comparisons are cut short")
            if len(column) and not 0 <= column.min() <= column.max() < size:
                raise ValueError("the comparisons name users or items that do not exist")
        if columns[3].shape != columns[0].shape or (np.diff(columns[0]) < 0).any():
            raise ValueError("the comparisons are out of order")
        observed = columns[0], columns[1], columns[2], columns[3].astype(np.float32)
        return draws, users, items, observed, unpack_seen(tensors, (n, m)), settings
    except (ModelFileError, FileNotFoundError):
        raise
    except (FileFormatError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelFileError(f"{str(path)!r} cannot be read as {_KIND}: {error}") from error


def _check_draws(draws: Draws, factors: int) -> tuple[int, int]:
    """Check shapes and values; return the numbers of users and items."""
    if any(array.ndim != 4 for array in (draws.user, draws.item, draws.rival)) or draws.scales.ndim != 3:
        raise ValueError("the draws do not have the axes chains, draws, rows, factors")
    chains, count, n, k = draws.user.shape
    m = draws.item.shape[2]
    if draws.item.shape != (chains, count, m, k) or draws.rival.shape != draws.item.shape or k != factors:
        raise ValueError("the draws of users, items and rivals do not fit each other")
    if draws.scales.shape != (chains, count, 3) or not len(draws):
        raise ValueError("there are no draws")
    for array in (draws.user, draws.item, draws.rival):
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError("the draws are not finite float32 numbers")
    return n, m
