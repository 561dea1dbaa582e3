"""Checkpoints of a run: the draws since the last one and where every chain stands."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._files import FileFormatError, read_arrays, write_arrays
from sadrec.models import CheckpointError
from sadrec.posterior.chain import Chain
from sadrec.posterior.draws import Draws

FORMAT = 1
_KIND = "a checkpoint of sadrec's sampler"
logger = logging.getLogger("sadrec")


class DrawFiles:
    """A folder with the parts of one run, each from one sweep to a later one.

    Parameters
    ----------
    folder
        Where they are written; made when missing.
    identity
        What the draws depend on; the parts of another run are refused.
    seconds
        Write at most once in this time.

    Raises
    ------
    ValueError
        When there is a file in the place of the folder: now, not when the first part is written.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], seconds: float):
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoint must be a folder, but {str(folder)!r} is a file: choose another name")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._identity = identity
        self._seconds = seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self._last >= self._seconds

    def save(self, chains: Sequence[Chain], draws: Draws, since: tuple[int, int], kept: int) -> None:
        """Write the draws made since (sweep, draws kept then), and the state of the chains."""
        sweep, first = since
        part = slice(first, kept)
        arrays: dict[str, NDArray[Any]] = {
            "user": draws.user[:, part],
            "item": draws.item[:, part],
            "rival": draws.rival[:, part],
            "scales": draws.scales[:, part],
            "xi": np.stack([chain.state.xi for chain in chains]),
            "eta": np.stack([chain.state.eta for chain in chains]),
            "tau": np.stack([chain.state.tau for chain in chains]),
            "prior": np.stack([chain.state.prior for chain in chains]),
            "mean": np.stack([chain.state.mean for chain in chains]),
        }
        last = chains[0].sweep
        header = {
            "kind": "gibbs checkpoint",
            "format": FORMAT,
            "identity": self._identity,
            "sweeps": [sweep, last],
            "draws": [first, kept],
        }
        write_arrays(self.folder / f"sweeps-{sweep:08d}-{last:08d}.checkpoint", arrays, header)
        self._last = time.monotonic()

    def load(self, chains: Sequence[Chain], draws: Draws, most_sweeps: int) -> int:
        """Bring the chains to where the parts end and fill in their draws; return how many draws each chain has.

        A part that cannot be read, and those behind it, are made again.

        Raises
        ------
        CheckpointError
            When the folder holds the parts of a run with other data or settings.
        """
        kept = 0
        while True:
            found = self._next(chains[0].sweep, most_sweeps)
            if found is None:
                return kept
            arrays, header = found
            if header["draws"][0] != kept:
                return kept
            first, kept = header["draws"]
            for name in ("user", "item", "rival", "scales"):
                getattr(draws, name)[:, first:kept] = arrays[name]
            for chain in chains:
                for state in ("xi", "eta", "tau", "prior", "mean"):
                    getattr(chain.state, state)[...] = arrays[state][chain.number]
                chain.sweep = header["sweeps"][1]

    def _next(self, sweep: int, most_sweeps: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Return the longest readable part that begins at a sweep and ends in time."""
        for path in sorted(self.folder.glob(f"sweeps-{sweep:08d}-*.checkpoint"), reverse=True):
            try:
                arrays, header = read_arrays(path, _KIND)
            except FileFormatError as error:
                logger.warning("%s; these sweeps are made again", error)
                continue
            if header.get("kind") != "gibbs checkpoint" or header.get("format") != FORMAT:
                raise CheckpointError(f"{str(path)!r} is not {_KIND} of this version: choose another folder")
            if header["identity"] != self._identity:
                theirs = header["identity"]
                changed = sorted(name for name in self._identity if theirs.get(name) != self._identity[name])
                raise CheckpointError(
                    f"the checkpoints in {str(self.folder)!r} belong to a run with other {', '.join(changed)}: "
                    "choose another folder, or remove them to start again"
                )
            if sweep < header["sweeps"][1] <= most_sweeps:
                return arrays, header
        return None
