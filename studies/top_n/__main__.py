"""``python -m studies.top_n``: compare the best N of the whole catalogue with EASE, ALS and others."""

from pathlib import Path

import click

from studies._options import MOVIELENS, load_ratings, study

# Trials of each model: a fit to the smaller data takes a tenth of the time.
TRIALS = {"movielens-1m": 12, "movielens-100k": 30, "gowalla": 4}


@study("top-n")
@click.option(
    "--dataset",
    "--name",
    "names",
    multiple=True,
    type=click.Choice((*MOVIELENS, "gowalla")),
    help="Only this data set; may be given several times.  [default: MovieLens]",
)
@click.option("--model", "models", multiple=True, help="Only this model; may be given several times.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    help="Settings each model tries.  [default: 12 on 1M, 30 on 100K, 4 on gowalla]",
)
@click.option("--seeds", type=click.IntRange(min=1), help="Random splits.  [default: 3; 1 on gowalla]")
def top_n_command(
    data_folder: Path | None,
    output: Path,
    names: tuple[str, ...],
    models: tuple[str, ...],
    trials: int | None,
    seeds: int | None,
    quick: bool,
    num_threads: int,
    quiet: bool,
) -> None:
    """Compare the best N of the whole catalogue with EASE, ALS and others.

    All models are tuned with as many trials on the same validation split. MovieLens is split at random; Gowalla has a
    published split, and the report shows published figures beside those measured here. Interrupted with Ctrl-C or
    killed, the same command continues.
    """
    from studies.top_n.published import load_gowalla
    from studies.top_n.spaces import OF_SETS
    from studies.top_n.study import TITLES, top_n_study

    for name in names or (MOVIELENS[1:] if quick else MOVIELENS):
        spaces, start = OF_SETS[name]
        published = name == "gowalla"
        data = load_gowalla(data_folder) if published else load_ratings(name, data_folder)
        done = top_n_study(
            output,
            data,
            name,
            models=models or tuple(TITLES),
            trials=trials or (2 if quick else TRIALS[name]),
            seeds=seeds or (1 if quick or published else 3),
            spaces=spaces,
            start=start,
            num_threads=num_threads,
            show_progress=not quiet,
        )
        click.echo(done.report.read_text())
        click.echo(f"Report: {done.report}")


if __name__ == "__main__":
    top_n_command(prog_name="python -m studies.top_n")
