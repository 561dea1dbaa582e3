"""``python -m studies.posterior``: evidence for the Gibbs sampler."""

from pathlib import Path

import click

from studies._options import study
from studies.posterior.study import PARTS, Length, posterior_study


@study("posterior")
@click.option("--only", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part; may be given again.")
def posterior_command(data_folder: Path | None, output: Path, parts: tuple[str, ...], quick: bool, quiet: bool) -> Path:
    """Check the Gibbs sampler: agreement of chains, coverage, calibration, agreement with SGD, choice of prior.

    The authors' simulation and the sets of comparisons are read from --data; without it the former is simulated anew
    and the latter are left out. Interrupted with Ctrl-C or killed, the same command continues.
    """
    quickly = Length(draws=100, warmup=50, data_sets=2, priors=1, factors=(1,), real=1)
    length = quickly if quick else Length()
    return posterior_study(output, data_folder, parts=parts or PARTS, length=length, show_progress=not quiet)


if __name__ == "__main__":
    posterior_command(prog_name="python -m studies.posterior")
