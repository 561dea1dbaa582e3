"""Checkpoints of a run: the draws since the last one and where every chain stands."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sadrec._record import Arrays, Records
from sadrec.posterior.chain import Chain
from sadrec.posterior.draws import Draws

logger = logging.getLogger("sadrec")

_DRAWS, _STATE = ("user", "item", "rival", "scales"), ("xi", "eta", "tau", "prior", "mean")


class DrawFiles:
    """The parts of one run, each from one sweep to a later one, as records in a folder.

    The parts of a run with another ``identity`` are refused. A part is written at most once in so many ``seconds``.
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
        if np.isnan(array).any() or (name != "prior" and not np.isfinite(array).all()):
            raise ValueError(f"{name} holds numbers that are not finite")
    return sweep, last
