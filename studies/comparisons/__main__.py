"""``python -m studies.comparisons``: predict held-out comparisons: SAD, T = 1 and Bradley-Terry."""

from pathlib import Path

import click

from studies._options import Study, data_option, output_option, quick_option, quiet_option
from studies._tools import resumable


@click.command("comparisons", cls=Study)
@data_option
@output_option("comparisons-study")
@click.option("--name", "names", multiple=True, help="Only this data set; may be given several times.")
@click.option("--splits", type=click.IntRange(min=1), help="Random splits.  [default: 5]")
@quick_option
@quiet_option
def comparisons_command(
    data_folder: Path | None, output: Path, names: tuple[str, ...], splits: int | None, quick: bool, quiet: bool
) -> None:
    """Predict held-out comparisons: SAD, T = 1 and Bradley-Terry.

    With and without knowing the judges. Interrupted with Ctrl-C or killed, the same command continues.
    """
    from studies.comparisons.study import DATA, comparisons_study

    if data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    chosen = names or (("llmfao",) if quick else tuple(DATA))
    with resumable(output):
        study = comparisons_study(
            output, data_folder, names=chosen, splits=splits or (1 if quick else 5), show_progress=not quiet
        )
    click.echo(study.report.read_text())
    click.echo(f"Report: {study.report}")


if __name__ == "__main__":
    comparisons_command(prog_name="python -m studies.comparisons")
