"""Run the pieces of the simulation study on all cores; a killed run goes on where it was."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from sadrec.evaluation._store import write_atomically
from studies.simulation.fits import MODELS, Piece, Record, fit_and_watch, identity

RUNS = "runs"


def record_path(folder: Path, piece: Piece, model: str) -> Path:
    """Return where the record of a fit is kept."""
    return folder / RUNS / f"{piece.scenario}-{piece.missing:02d}-{model}-{piece.seed:03d}.json"


def run_piece(folder: Path, piece: Piece) -> int:
    """Fit every model to a piece, unless its record is there, and return how many fits it took."""
    simulation = piece.simulation()
    fitted = 0
    for model in MODELS:
        path = record_path(folder, piece, model)
        wanted = identity(piece, model, simulation)
        if _read(path, wanted) is None:
            record = {"identity": wanted, **fit_and_watch(piece, model, simulation)}
            write_atomically(path, json.dumps(record, allow_nan=False).encode())
            fitted += 1
    return fitted


def run_pieces(folder: Path, pieces: list[Piece], workers: int = 0, show_progress: bool = True) -> int:
    """Fit all models to all pieces and return how many fits were made; the others were there before.

    Parameters
    ----------
    folder
        Where records are kept, one small file per fit, each written whole or not at all.
    pieces
        What to fit to.
    workers
        How many processes; 0 means one per core. It does not change the result.
    show_progress
        Whether to show a bar (on a terminal).
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ValueError(f"workers must be 0 (one per core) or a number of processes, not {workers!r}")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the results")
    workers = min(workers or os.cpu_count() or 1, max(len(pieces), 1))
    fitted = 0
    bar = tqdm(total=len(pieces), desc="simulation study", unit="data set", disable=None if show_progress else True)
    with bar:
        for count in _results(folder, pieces, workers):
            fitted += count
            bar.update()
    return fitted


def _results(folder: Path, pieces: list[Piece], workers: int) -> Iterator[int]:
    """Yield how many fits each piece took, as they are done."""
    if workers == 1:
        for piece in pieces:
            yield run_piece(folder, piece)
        return
    # Processes, for the curves are computed in Python. Spawned: a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_leave_interrupts)
    try:
        tasks: list[Future[int]] = [pool.submit(run_piece, folder, piece) for piece in pieces]
        for task in as_completed(tasks):
            yield task.result()
    finally:
        # After Ctrl-C the fits at hand are finished, the others never started.
        pool.shutdown(wait=True, cancel_futures=True)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the parent, which lets this process finish what it is writing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def load_records(folder: Path, pieces: list[Piece]) -> list[Record]:
    """Return the records of all models and pieces, which must have been run."""
    return [json.loads(record_path(folder, piece, model).read_text()) for piece in pieces for model in MODELS]


def _read(path: Path, wanted: Record) -> Record | None:
    """Return a record if it is there, whole, and of the fit that is wanted."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("identity") != json.loads(json.dumps(wanted)):
        return None
    return record
