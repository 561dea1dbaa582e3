"""The simulation study from end to end: fits, tables, figures, report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from studies._tools import Record, new_figure, run, whole, write_whole
from studies.simulation.authors import read_simulation
from studies.simulation.claims import Claim, check_claims
from studies.simulation.figures import draw_figures
from studies.simulation.fits import MODELS, Piece, unit
from studies.simulation.report import write_report
from studies.simulation.summary import curves_table, final_table


@dataclass(frozen=True, eq=False)
class Study:
    """The results of the study.

    Attributes
    ----------
    final
        A row per scenario, model and missing share: the last epoch, mean and spread over the seeds.
    curves
        The same, epoch by epoch.
    claims
        The paper's claims, each with a verdict for the paper's setting and for ours.
    report
        The Markdown report; the figures and both tables are in the same folder.
    """

    final: pl.DataFrame
    curves: pl.DataFrame
    claims: list[Claim]
    report: Path


def simulation_study(
    folder: str | Path,
    *,
    seeds: int = 20,
    missing: Sequence[int] = tuple(range(0, 100, 10)),
    authors_file: str | Path | None = None,
    workers: int = 0,
    show_progress: bool = True,
) -> Study:
    """Run the paper's simulation study, with its settings and with ours, and write it down.

    Parameters
    ----------
    folder
        Where figures, tables and report are written. Records of single fits are kept in ``runs``: run again, the study
        makes only the fits that are not there yet.
    seeds
        How many seeds, 0, 1, ...
    missing
        Percentages of the comparisons to leave out.
    authors_file
        The authors' own simulated data (.npz); without it, their part of the study is left out.
    workers
        Processes; 0 means one per core. The result does not depend on it.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    new_figure(1, 1)  # say now, not after minutes, that matplotlib is missing
    whole(seeds, "seeds", least=1)
    shares = sorted(set(missing))
    if not shares or shares[0] < 0 or shares[-1] > 99:
        raise ValueError(f"missing must be percentages from 0 to 99, not {list(missing)}")
    scenarios: dict[str, Path | None] = {"sim1": None, "sim2": None}
    if authors_file is not None:
        scenarios["authors"] = Path(authors_file).absolute()
        read_simulation(authors_file)
    folder = Path(folder)
    pieces = [
        Piece(scenario, share, seed, file)
        for seed in range(seeds)
        for share in shares
        for scenario, file in scenarios.items()
    ]
    records = run_pieces(folder, pieces, workers, show_progress)
    curves, final = curves_table(records), final_table(records)
    for name, table in (("curves", curves), ("final", final)):
        write_whole(folder / f"{name}.csv", table.write_csv())
    claims = check_claims(final)
    captions = draw_figures(folder, records, curves, final)
    report = write_report(folder, claims, final, captions)
    return Study(final, curves, claims, report)


def run_pieces(folder: Path, pieces: Sequence[Piece], workers: int = 0, show_progress: bool = True) -> list[Record]:
    """Fit all models to all pieces and return the records, piece by piece."""
    units = []
    for piece in pieces:
        simulation = piece.simulation()
        units += [unit(piece, model, simulation) for model in MODELS]
    return run(folder, units, "simulation study", workers=workers, show_progress=show_progress)
