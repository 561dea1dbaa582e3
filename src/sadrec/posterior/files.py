"""A posterior as a file, without any code in it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.check import outside
from sadrec._core.files import write_arrays
from sadrec.data.ids import Ids
from sadrec.models.files import pack_ids, pack_seen, read_kind, refusing, unpack_ids, unpack_seen
from sadrec.posterior.chain import ByUser
from sadrec.posterior.draws import Draws
from sadrec.posterior.settings import GibbsSettings, SamplerSettings, resolved
from sadrec.training.variational.counts import starts

FORMAT = 1
_DRAWS = ("user", "item", "rival", "scales")
_OBSERVED = ("user", "winner", "loser", "root")


def save_posterior(
    path: str | Path,
    draws: Draws,
    users: Ids,
    items: Ids,
    observed: ByUser,
    seen: Any,
    settings: GibbsSettings,
    num_threads: int,
) -> None:
    """Write a posterior, whole or not at all."""
    tensors: dict[str, NDArray[Any]] = {f"{name.removesuffix('s')}_draws": getattr(draws, name) for name in _DRAWS}
    tensors |= {f"observed_{name}": getattr(observed, name) for name in _OBSERVED}
    kinds = {"users": pack_ids("users", users.array, tensors), "items": pack_ids("items", items.array, tensors)}
    header = {"kind": "posterior", "format": FORMAT, "ids": kinds, "settings": settings.as_dict()}
    header["num_threads"] = num_threads
    write_arrays(Path(path), {**tensors, **pack_seen(seen)}, header)


def load_posterior(path: str | Path) -> tuple[Draws, Ids, Ids, ByUser, Any, GibbsSettings, int]:
    """Return what :func:`save_posterior` wrote, checked; draws stay on the disk until they are used."""
    with refusing(path, "a sadrec posterior"):
        tensors, header = read_kind(path, "posterior", FORMAT)
        draws = Draws(*(tensors[f"{name.removesuffix('s')}_draws"] for name in _DRAWS))
        given = {"bias": False, **header["settings"]}  # files from before there was one do not name it
        threads = header.get("num_threads", 0)
        settings = resolved(SamplerSettings(random_state=given.pop("seed"), num_threads=threads, **given))
        n, m = _check_draws(draws, settings.factors, settings.bias)
        users = Ids(unpack_ids("users", header["ids"]["users"], tensors, n), "user")
        items = Ids(unpack_ids("items", header["ids"]["items"], tensors, m), "item")
        observed = _observed([np.array(tensors[f"observed_{name}"]) for name in _OBSERVED], n, m)
        return draws, users, items, observed, unpack_seen(tensors, (n, m)), settings, threads


def _observed(columns: list[NDArray[Any]], n: int, m: int) -> ByUser:
    """Return the comparisons learnt from, checked."""
    user, winner, loser, root = columns
    for column, size in ((user, n), (winner, m), (loser, m)):
        if column.dtype != np.int32 or column.ndim != 1 or len(column) != len(user):
            raise ValueError("the comparisons are cut short")
        if outside(column, size) is not None:
            raise ValueError("the comparisons name users or items that do not exist")
    if root.shape != user.shape or root.dtype != np.float32 or not np.isfinite(root).all():
        raise ValueError("the weights of the comparisons are not finite float32 numbers")
    if (np.diff(user) < 0).any():
        raise ValueError("the comparisons are out of order")
    return ByUser(starts(user, n), user, winner, loser, root)


def _check_draws(draws: Draws, factors: int, bias: bool) -> tuple[int, int]:
    """Check shapes and values; return the numbers of users and items."""
    if any(array.ndim != 4 for array in (draws.user, draws.item, draws.rival)) or draws.scales.ndim != 3:
        raise ValueError("the draws do not have the axes chains, draws, rows, factors")
    chains, count, n, k = draws.user.shape
    m = draws.item.shape[2]
    shapes = (chains, count, m, k + bias), (chains, count, m, k)
    if (draws.item.shape, draws.rival.shape) != shapes or k != factors:
        raise ValueError("the draws of users, items and rivals do not fit each other")
    if draws.scales.shape != (chains, count, 3 + bias) or not len(draws):
        raise ValueError("there are no draws")
    for array in (draws.user, draws.item, draws.rival, draws.scales):
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError("the draws are not finite float32 numbers")
    return n, m
