"""``python -m studies.comparisons``: predict held-out comparisons of every set there is."""

from pathlib import Path

import click

from studies._options import listed, study


@study("comparisons")
@click.option(
    "--sets", callback=listed, help="Only these data sets, with commas between them.  [default: all that are there]"
)
@click.option("--models", callback=listed, help="Only these models, with commas between them.  [default: nine of them]")
@click.option("--seeds", default="0,1,2", show_default=True, help="Seeds of the splits, with commas between them.")
@click.option(
    "--by",
    type=click.Choice(["row", "pairing", "both"]),
    default="both",
    show_default=True,
    help="Hold out single comparisons, or all comparisons of two items.",
)
@click.option("--finished", is_flag=True, help="Fit nothing: print what is done.")
@click.option("--verdicts", is_flag=True, help="Print instead what compare_with_bpr says of each set.")
def comparisons_command(
    data_folder: Path | None,
    output: Path,
    sets: list[str],
    models: list[str],
    seeds: str,
    by: str,
    finished: bool,
    verdicts: bool,
    quick: bool,
    quiet: bool,
) -> Path | str:
    """Predict held-out comparisons: coin, Bradley-Terry, blade-chest, BPR, SAD, GibbsSAD.

    Every folder of the data folder, or of a folder in it, that holds a comparisons.parquet is a data set. Interrupted
    with Ctrl-C or killed, the same command continues.
    """
    from studies.comparisons.models import MODELS, USUAL
    from studies.comparisons.study import By, comparisons_study
    from studies.comparisons.verdicts import verdicts_study

    if data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    most = 2000 if quick else None
    if verdicts:
        verdicts_study(output, data_folder, sets=sets, most=most, show_progress=not quiet)
        return (output / "verdicts.md").read_text()
    chosen = models or list(USUAL)
    for name in chosen:
        if name not in MODELS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(MODELS)}", param_hint="--models")
    ways: tuple[By, ...] = ("row", "pairing")
    comparisons_study(
        output,
        data_folder,
        sets=sets,
        models=[name for name in MODELS if name in chosen],
        seeds=[0] if quick else _whole_numbers(seeds),
        by=[way for way in ways if by in (way, "both")],
        most=most,
        finished=finished,
        show_progress=not quiet,
    )
    return output / "report.md"


def _whole_numbers(text: str) -> list[int]:
    parts = listed(None, None, text)
    if not parts or not all(part.isdigit() for part in parts):
        raise click.BadParameter(f"whole numbers with commas between them, not {text!r}", param_hint="--seeds")
    return [int(part) for part in parts]


if __name__ == "__main__":
    comparisons_command(prog_name="python -m studies.comparisons")
