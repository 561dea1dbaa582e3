"""``python -m studies.features``: what features of items and users are worth where there is no history."""

from pathlib import Path

import click

from studies._options import listed, study

DATASETS = ("movielens-100k", "movielens-1m", "simulated", "pokemon")


@study("features")
@click.option("--dataset", "datasets", type=click.Choice(DATASETS), multiple=True, help="Which; repeat it.  [all]")
@click.option("--models", callback=listed, help="Only these models, with commas between them.  [default: all]")
@click.option(
    "--tasks", callback=listed, default="items,users,warm", show_default=True, help="Of MovieLens: who is new."
)
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Random splits.")
@click.option(
    "--first-seed", type=click.IntRange(0, 900), default=0, show_default=True, help="Seed of the first split."
)
@click.option(
    "--tuned-on", type=click.Choice(DATASETS[:2]), help="Choose the settings of lists on training rows of this one."
)
@click.option("--share", type=click.FloatRange(0.01, 1.0), default=1.0, help="Take a share of the users of MovieLens.")
def features_command(
    data_folder: Path | None,
    output: Path,
    datasets: tuple[str, ...],
    models: list[str],
    tasks: list[str],
    seeds: int,
    first_seed: int,
    tuned_on: str | None,
    share: float,
    quick: bool,
    quiet: bool,
) -> str:
    """Rank items, and for users, without history; predict battles of Pokemon that nobody has seen.

    Compared are SAD with and without features, LightFM (python -m studies.baselines install lightfm), models of
    features alone, popularity and Bradley-Terry. Interrupted with Ctrl-C or killed, the same command continues.
    """
    from studies.features.battles import BATTLE_MODELS
    from studies.features.models import MODELS
    from studies.features.study import TASKS, features_study

    for option, names, known in (("--models", models, {**MODELS, **BATTLE_MODELS}), ("--tasks", tasks, TASKS)):
        for name in names:
            if name not in known:
                raise click.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=option)
    return features_study(
        output,
        data_folder,
        datasets or DATASETS,
        models=models,
        tasks=tasks,
        seeds=list(range(first_seed, first_seed + (1 if quick else seeds))),
        tuned_on=tuned_on,
        share=share,
        most=2000 if quick else None,
        show_progress=not quiet,
    )


if __name__ == "__main__":
    features_command(prog_name="python -m studies.features")
