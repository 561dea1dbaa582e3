"""Recommendations for everybody on Ray: each part is a task, which any worker can repeat.

Tasks and not Ray Data: a part is two numbers in and a file out, so that there is nothing to stream between workers.
"""

import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sadrec._core.files import checksum_of, read_arrays
from sadrec._core.linear import blas_threads
from sadrec.cluster.actors import MOST_LOSSES, Lost, cause_of, ray
from sadrec.models import ExportPart, ExportWork, Lists, Written, load_model, unpack_seen

logger = logging.getLogger("sadrec")

_held: list[tuple[tuple[ExportWork, int], Lists]] = []
"""The files that this process opened last: the next part needs them, too."""


def write_part(work: ExportWork, part: ExportPart, threads: int) -> Written:
    """Write a part, in a worker."""
    if not _held or _held[0][0] != (work, threads):
        _held[:] = [((work, threads), _opened(work, threads))]
    with blas_threads(threads):
        return _held[0][1].write(part, work.folder)


def _opened(work: ExportWork, threads: int) -> Lists:
    """Map the files of some work into memory."""
    for path in (work.model, work.excluded, work.folder):
        if path is not None and not Path(path).exists():
            raise FileNotFoundError(
                f"{str(path)!r} is not there on {socket.gethostname()}: the model's file and output must be in folders "
                "that all nodes share"
            )
    fitted, _, _ = load_model(work.model, mmap=True, verify=False)
    if checksum_of(work.model) != work.checksum:
        raise ValueError(f"{str(work.model)!r} was replaced by another model in the meantime: call again")
    excluded = None
    if work.excluded is not None:
        tensors, header = read_arrays(work.excluded, "what to leave out", verify=False)
        excluded = unpack_seen(tensors, tuple(header["shape"]))
    return Lists(fitted, excluded, work.question, threads)


def write_parts(
    work: ExportWork, parts: Iterable[ExportPart], done: Callable[[Written], object], workers: int, threads: int
) -> None:
    """Have workers write all parts, and call ``done`` after each; a part whose worker is lost is repeated.

    An exception is raised, not tried again.
    """
    most = max((node["Resources"].get("CPU", 0) for node in ray().nodes() if node["Alive"]), default=0)
    if threads > most:
        raise ValueError(f"no node has threads={threads} CPUs, the largest has {most:g}: lower threads")
    task = ray().remote(num_cpus=threads, max_retries=0)(write_part)
    losses: Counter[int] = Counter()
    running: dict[Any, ExportPart] = {}
    left, again = iter(parts), list[ExportPart]()
    try:
        while True:
            while len(running) < workers and (part := again.pop() if again else next(left, None)) is not None:
                running[task.remote(work, part, threads)] = part
            if not running:
                return
            (reference, *_), _ = ray().wait(list(running), num_returns=1)
            part = running.pop(reference)
            try:
                written = ray().get(reference)
            except ray().exceptions.RayError as error:
                cause = cause_of(error)
                if not isinstance(cause, Lost):
                    raise cause from error
                losses[part.number] += 1
                if losses[part.number] > MOST_LOSSES:
                    raise RuntimeError(
                        f"{losses[part.number]} workers were lost at {part.name} ({cause}): see the logs of Ray for "
                        "what ended them"
                    ) from error
                logger.warning("%s was lost with its worker (%s); trying again", part.name, cause)
                again.append(part)
            else:
                done(written)
    finally:
        for reference in running:
            with suppress(Exception):
                ray().cancel(reference, force=True)
