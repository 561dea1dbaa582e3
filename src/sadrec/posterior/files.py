"""Draws on the disk: checkpoints of a run, and a posterior as a file, without any code in it."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._check import outside
from sadrec._files import kind_in_words, read_arrays, write_arrays
from sadrec._record import Arrays, Records
from sadrec.data.ids import Ids
from sadrec.models import ModelFileError
from sadrec.models.files import pack_ids, pack_seen, refusing, unpack_ids, unpack_seen
from sadrec.posterior.chain import Chain
from sadrec.posterior.draws import Draws
from sadrec.posterior.layout import ByUser
from sadrec.posterior.settings import GibbsSettings, SamplerSettings, resolved
from sadrec.training.layout import starts

logger = logging.getLogger("sadrec")

FORMAT = 1
_KIND = "a sadrec posterior"
_DRAWS, _STATE = ("user", "item", "rival", "scales"), ("xi", "eta", "tau", "prior", "mean", "bias_centre")
_OBSERVED = ("user", "winner", "loser", "root")


class DrawFiles:
    """The parts of one run, each from one sweep to a later one, as records in a folder.

    The parts of a run with another ``identity`` are refused. A part is written at most once in ``seconds``.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any], seconds: float):
        self._records = Records(folder, "draws", identity)
        self._seconds = seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self._seconds

    def save(self, chains: Sequence[Chain], draws: Draws, since: tuple[int, int], kept: int) -> None:
        """Write the draws made since (sweep, draws kept then), and the state of the chains."""
        sweep, first = since
        last = chains[0].sweep
        arrays = {name: getattr(draws, name)[:, first:kept] for name in _DRAWS}
        arrays |= {name: np.stack([getattr(chain.state, name) for chain in chains]) for name in _STATE}
        values = {"sweeps": [sweep, last], "draws": [first, kept]}
        self._records.write(f"sweeps-{sweep:08d}-{last:08d}", values, arrays)
        self._last = time.monotonic()

    def load(self, chains: Sequence[Chain], draws: Draws, most_sweeps: int) -> int:
        """Bring the chains to where the parts end and fill in their draws; return how many draws each chain has.

        A part that is damaged or does not fit, and those behind it, are made again.
        """
        kept = 0
        while (part := self._next(chains, draws, kept, most_sweeps)) is not None:
            arrays, sweep, last = part
            for name in _DRAWS:
                getattr(draws, name)[:, kept:last] = arrays[name]
            for chain in chains:
                for name in _STATE:
                    getattr(chain.state, name)[...] = arrays[name][chain.number]
                chain.sweep = sweep
            kept = last
        return kept

    def _next(
        self, chains: Sequence[Chain], draws: Draws, kept: int, most_sweeps: int
    ) -> tuple[Arrays, int, int] | None:
        """Return the longest part that begins where the chains are and ends in time, its last sweep and draw."""
        beginning = f"sweeps-{chains[0].sweep:08d}-"
        for name in reversed(self._records.names()):
            record = self._records.read(name) if name.startswith(beginning) else None
            if record is None:
                continue
            values, arrays = record
            try:
                sweep, last = _checked(values, arrays, chains, draws, kept)
            except (KeyError, TypeError, ValueError) as error:
                logger.warning("%s does not fit the run (%s); these sweeps are made again", name, error)
                continue
            if sweep <= most_sweeps:
                return arrays, sweep, last
        return None


def _checked(
    values: Mapping[str, Any], arrays: Arrays, chains: Sequence[Chain], draws: Draws, kept: int
) -> tuple[int, int]:
    """Return the last sweep and the last draw of a part whose shapes, types and numbers are what they should be."""
    (began, sweep), (first, last) = values["sweeps"], values["draws"]
    settings = chains[0].settings
    if began != chains[0].sweep or first != kept or sweep <= began:
        raise ValueError("it begins elsewhere")
    if last != max(0, sweep - settings.warmup) // settings.thin:
        raise ValueError("its draws are not those of its sweeps")
    shapes = {name: (len(chains), last - first, *getattr(draws, name).shape[2:]) for name in _DRAWS}
    shapes |= {name: (len(chains), *getattr(chains[0].state, name).shape) for name in _STATE}
    for name, shape in shapes.items():
        array, dtype = arrays[name], np.float32 if name in _DRAWS else np.float64
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{name} has the shape {array.shape} and the type {array.dtype}")
        # A precision of the prior may be infinite, where it is so from the beginning.
        finite = np.isfinite(chains[0].state.prior) if name == "prior" else True
        if np.isnan(array).any() or (np.isfinite(array) != finite).any():
            raise ValueError(f"{name} holds numbers that are not finite")
    return sweep, last


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
    """Write everything, whole or not at all."""
    tensors: dict[str, NDArray[Any]] = {f"{name.removesuffix('s')}_draws": getattr(draws, name) for name in _DRAWS}
    tensors |= {f"observed_{name}": getattr(observed, name) for name in _OBSERVED}
    kinds = {"users": pack_ids("users", users.array, tensors), "items": pack_ids("items", items.array, tensors)}
    header = {"kind": "posterior", "format": FORMAT, "ids": kinds, "settings": settings.as_dict()}
    header["num_threads"] = num_threads
    write_arrays(Path(path), {**tensors, **pack_seen(seen)}, header)


def load_posterior(path: str | Path) -> tuple[Draws, Ids, Ids, ByUser, Any, GibbsSettings, int]:
    """Return what :func:`save_posterior` wrote, checked; draws stay on the disk until they are used."""
    with refusing(path, _KIND):
        tensors, header = read_arrays(Path(path), _KIND)
        if header.get("kind") != "posterior":
            raise ModelFileError(f"{str(path)!r} is not {_KIND} but {kind_in_words(header.get('kind'))}")
        if header.get("format") != FORMAT:
            raise ModelFileError(
                f"{str(path)!r} has the format {header.get('format')!r}, this version reads {FORMAT}: update sadrec"
            )
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
