"""How the penalties should follow the amount of data: measured where the truth is known."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import click
import numpy as np
import polars as pl
from tqdm import tqdm

from sadrec import SAD
from sadrec.data import simulate
from studies._options import study
from studies._tools import markdown_table, whole
from studies.simulation.fits import preferences, sparsity

# The default penalties at 1000 comparisons per vector.
REGULARIZATION, RIVAL_REGULARIZATION = 0.0005, 0.01
# Truths that the simulation study does not report on.
FIRST_SEED = 100
MISSING = (0, 50, 80, 90)
L2_POWERS = (0.0, 0.5, 1.0)
L1_POWERS = (0.0, 0.25, 0.5)


@dataclass(frozen=True)
class Trial:
    """One fit: a penalty is its value at 1000 comparisons per vector, times (1000 / comparisons per vector)^power."""

    scenario: str
    missing: int
    l2_power: float
    l1_power: float
    seed: int

    def run(self) -> tuple[float, float]:
        """Fit and return MSE over the variance of X, and the sparsity of T."""
        simulation = simulate("sim1" if self.scenario == "sim1" else "sim2", missing=self.missing / 100, seed=self.seed)
        n, m, k = simulation.shape
        scarcity = 1000 * (n + m) / (3 * len(simulation.comparisons))
        model = SAD(
            factors=k,
            solver="sgd",
            advanced={"adaptive": True},
            regularization=REGULARIZATION * scarcity**self.l2_power,
            rival_regularization=RIVAL_REGULARIZATION * scarcity**self.l1_power,
            random_state=self.seed,
            num_threads=1,
        ).fit(simulation.comparisons, False)
        error = np.mean((preferences(model.state.parameters) - simulation.X) ** 2)
        return float(error / simulation.X.var()), sparsity(model.rival_factors)


def penalties_study(seeds: int = 6, missing: tuple[int, ...] = MISSING, show_progress: bool = True) -> pl.DataFrame:
    """Return mean error and sparsity for every pair of powers that penalties may follow the scarcity of data with.

    Parameters
    ----------
    seeds
        How many simulated truths, each of Sim1 and Sim2.
    missing
        Percentages of the comparisons to leave out.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    whole(seeds, "seeds", least=1)
    trials = [
        Trial(scenario, share, l2_power, l1_power, FIRST_SEED + seed)
        for scenario in ("sim2", "sim1")
        for share in missing
        for l2_power in L2_POWERS
        for l1_power in L1_POWERS
        for seed in range(seeds)
    ]
    bar = tqdm(total=len(trials), desc="penalties", unit="fit", disable=None if show_progress else True)
    results = []
    with bar, ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(Trial.run, trials):
            results.append(result)
            bar.update()
    columns = ("scenario", "missing", "l2_power", "l1_power")
    rows = [
        {name: getattr(trial, name) for name in columns} | {"relative_mse": error, "sparsity": share}
        for trial, (error, share) in zip(trials, results, strict=True)
    ]
    return pl.DataFrame(rows).group_by(columns, maintain_order=True).mean()


@study("penalties")
@click.option("--seeds", type=click.IntRange(min=1), default=6, show_default=True, help="How many simulated truths.")
def penalties_command(seeds: int, quiet: bool) -> None:
    """Measure how the penalties should follow the number of comparisons.

    Prints a Markdown table: MSE over the variance of X, and the sparsity of T, when l2 and l1 grow with powers of
    1000 / (comparisons per vector).
    """
    table = penalties_study(seeds, show_progress=not quiet)
    shares = table["missing"].unique(maintain_order=True).to_list()
    rows = [
        [*powers, *(f"{row['relative_mse']:.3f} ({row['sparsity']:.1%})" for row in part.iter_rows(named=True))]
        for powers, part in table.group_by(["scenario", "l2_power", "l1_power"], maintain_order=True)
    ]
    click.echo(markdown_table(["scenario", "l2 power", "l1 power", *(f"{share} % missing" for share in shares)], rows))


if __name__ == "__main__":
    penalties_command(prog_name="python -m studies.simulation.penalties")
