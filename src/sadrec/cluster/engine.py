"""The engine ``Ray``: fits on a cluster that survive lost workers and nodes, with the bits of one machine."""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sadrec._core import check
from sadrec.cluster.actors import ray
from sadrec.cluster.parts import write_parts
from sadrec.cluster.shared import SharedData
from sadrec.data import Comparisons, ParquetFiles
from sadrec.models import ExportPart, ExportWork, Written


@dataclass(frozen=True)
class Ray:
    """Train on a cluster of Ray: ``SAD(...).fit("clicks/", engine=Ray(workers=4))``; ``recommend_all`` takes it too.

    The data is Parquet that the workers read. The model has the bits that ``fit`` on one machine gives it. A worker
    that is lost is replaced, or, where no node has room for another, the rest goes on without it; the bits stay.

    Parameters
    ----------
    workers
        How many, each a process that holds a part of the users; at most as many as the setting ``blocks``.
    address
        Of the cluster, as ``ray.init`` takes it ("auto", "ray://..."). None: the one this process is connected to, that
        of the environment variable RAY_ADDRESS, or, where there is none, one that is started on this machine.
    threads
        How many threads each worker has, and how many CPUs Ray sets aside for it.
    spare_seconds
        How long to wait for a place for a lost worker before going on without it.
    output
        A file to write the model to at the end of a fit, in a folder of this machine: the users' factors and what they
        did pass through this process a piece at a time, and the fitted model is the file, mapped into memory. None:
        they come to the memory of this process.
    """

    workers: int = 2
    address: str | None = None
    threads: int = 1
    spare_seconds: float = 30.0
    output: str | Path | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("workers", "threads"):
            value = getattr(self, name)
            if not check.is_whole(value) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
        if not 0 <= self.spare_seconds < math.inf:
            raise ValueError(f"spare_seconds must be a finite number from 0, not {self.spare_seconds!r}")
        if "://" in str(self.output):
            raise ValueError(f"output must be a file that this system has mounted, not {str(self.output)!r}: mount it")

    def read(self, files: ParquetFiles, comparisons: Comparisons | None = None) -> SharedData:
        """Have workers read files and share their rows, to learn from them and from comparisons."""
        started = self._connect()
        try:
            return SharedData(self, files, comparisons, ends_cluster=started)
        except BaseException:
            if started:
                ray().shutdown()
            raise

    def write_parts(self, work: ExportWork, parts: Iterable[ExportPart], done: Callable[[Written], object]) -> None:
        """Have workers write the parts of ``SAD.recommend_all``, and call ``done`` after each."""
        started = self._connect()
        try:
            write_parts(work, parts, done, self.workers, self.threads)
        finally:
            if started:
                ray().shutdown()

    def _connect(self) -> bool:
        """Connect to the cluster; return whether it was started here, and must be ended here."""
        if ray().is_initialized():
            return False
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray().init(address=self.address or "auto", **options)
        except ConnectionError:
            if self.address is not None:
                raise
            ray().init(num_cpus=self.workers * self.threads, include_dashboard=False, **options)
            return True
        return False
