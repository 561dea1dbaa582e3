"""Three outcomes of held-out comparisons, with ties learnt and with one probability of a tie for all.

``python -m studies.comparisons.ties`` takes sets with ties; with ``--file votes.csv`` a file of your own, such as
public arena data.
"""

import time
from pathlib import Path

import click
import numpy as np

from sadrec import SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons
from studies._options import study
from studies._tools import markdown_table
from studies.comparisons.baselines import bradley_terry, fit_scores, weights_of
from studies.comparisons.study import find_sets

RIDGE = 0.3


def row_of(train: Comparisons, test: Comparisons, threads: int) -> list[float]:
    """Return log losses of a split: decided by Bradley-Terry and SAD(), three outcomes by one share and learnt."""
    start = time.perf_counter()
    model = SAD(random_state=0, num_threads=threads).fit(train, show_progress=False)
    seconds = time.perf_counter() - start
    result = evaluate_comparisons(model, test)
    shares = []
    for part in (train, test):
        tied, weight = np.zeros(len(part), bool) if part.tied is None else part.tied, weights_of(part)
        shares.append(float(weight[tied].sum() / weight.sum()))
    learnt, true = shares
    constant = (1 - true) * (result["log_loss"] - np.log(1 - learnt)) - true * np.log(learnt)
    scores = bradley_terry(fit_scores(train.decided, RIDGE))(test.decided)
    bt = -float(np.average(np.log(scores), weights=weights_of(test.decided)))
    return [bt, result["log_loss"], constant, result["outcome_log_loss"], seconds]


@study("ties")
@click.option("--sets", default="llmfao", show_default=True, help="Data sets, with commas between them.")
@click.option("--file", "path", type=click.Path(exists=True, path_type=Path), help="A file of comparisons instead.")
@click.option("--by", type=click.Choice(["row", "pairing"]), default="row", show_default=True, help="What is held out.")
@click.option("--test", default=0.5, show_default=True, help="The share that is held out.")
@click.option("--threads", default=1, show_default=True, help="Threads of a fit.")
def ties_command(data_folder: Path | None, sets: str, path: Path | None, by: str, test: float, threads: int) -> None:
    """Print log losses of win, loss and tie."""
    if path is None and data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    paths = {path.stem: path} if path else find_sets(Path(str(data_folder)), sets.split(","))
    header = ["set", "split", "BT, decided", "SAD(), decided", "one share of ties", "learnt ties", "seconds"]
    rows = []
    for name, place in paths.items():
        data = Comparisons.read(place, show_progress=False)
        for seed in range(3):
            figures = row_of(*data.split(test, seed, by="pairing" if by == "pairing" else "row"), threads)
            rows.append([name, str(seed), *(f"{value:.4f}" for value in figures[:-1]), f"{figures[-1]:.1f}"])
    click.echo(markdown_table(header, rows, range(1, 7)))


if __name__ == "__main__":
    ties_command(prog_name="python -m studies.comparisons.ties")
