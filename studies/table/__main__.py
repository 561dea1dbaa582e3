"""``python -m studies.table``: the paper's evaluation table, run and written down."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from studies._options import study

if TYPE_CHECKING:
    from studies.table.study import Limits


@study("table")
@click.option("--dataset", default="movielens-100k", show_default=True, metavar="NAME|PATH",
              help="movielens-1m, movielens-100k, food-com, netflix, or a file or folder of interactions.")  # fmt: skip
@click.option("--path", type=click.Path(exists=True, path_type=Path), help="The original files of a named data set.")
@click.option("--splits", multiple=True, metavar="N|MODEL=N",
              help="Leave-one-out sets; also for one model (ncf=1, sad@500=5).  [default: 20]")  # fmt: skip
@click.option("--baselines", multiple=True, metavar="NAMES",
              help="Baselines, separated by commas; all by default. Popularity is always there.")  # fmt: skip
@click.option("--factors", multiple=True, type=click.IntRange(min=1),
              help="Factors of SAD and BPR; settings are searched with the first.  [default: 64 500]")  # fmt: skip
@click.option("--trials", multiple=True, metavar="N|MODEL=N", help="Settings tried per model.  [default: 6]")
@click.option("--budget", multiple=True, metavar="SECONDS|MODEL=SECONDS",
              help="Time for one fit and its evaluation; beyond it the row says so.  [default: 1800]")  # fmt: skip
@click.option("--set", "given", multiple=True, metavar="MODEL.SETTING=VALUE",
              help="A setting that is not searched over, e.g. svd.cells=sampled.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def table_command(
    dataset: str,
    path: Path | None,
    splits: tuple[str, ...],
    baselines: tuple[str, ...],
    factors: tuple[int, ...],
    trials: tuple[str, ...],
    budget: tuple[str, ...],
    given: tuple[str, ...],
    seed: int,
    output: Path,
    quiet: bool,
) -> None:
    """Compare SAD with its baselines the way the paper does, and write it down.

    Settings are chosen on a validation set inside the training part, every model is fitted on every leave-one-out set,
    and the Markdown report shows the paper's figures and ours. A baseline that
    fails or runs out of time is a row that says so. Interrupted or killed, the same command continues.
    """
    from studies._tools import new_figure
    from studies.baselines import BASELINES
    from studies.table.data import load_study_data
    from studies.table.report import write_report
    from studies.table.study import BUDGETS, SPLITS, TRIALS, table_study

    new_figure(1, 1)  # say now, not after minutes, that matplotlib is missing
    data = load_study_data(dataset, path, output / "data")
    click.echo(f"{data.title}: {data.interactions!r}", err=True)
    if data.selection:
        click.echo(f"Selected: {data.selection}.", err=True)
    done = table_study(
        data,
        output,
        baselines=_names(baselines) or list(BASELINES),
        factors=factors or (64, 500),
        splits=parse_limits(splits, SPLITS.usual, "--splits"),
        trials=parse_limits(trials, TRIALS.usual, "--trials"),
        budgets=parse_limits(budget, BUDGETS.usual, "--budget"),
        given=parse_given(given),
        seed=seed,
        show_progress=not quiet,
    )
    report = write_report(done, output, _command())
    click.echo(done.comparison.table(measures=["mean_margin", "match", "match_per_user", "m1", "m2"]))
    click.echo(f"Report: {report}")


def _names(given: Sequence[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _command() -> str:
    """Return the command line without paths of this machine."""
    words = [word for word in sys.argv[1:] if word != "--quiet"]
    shown = [
        Path(word).name if before in ("-o", "--output", "--path") or "/" in word else shlex.quote(word)
        for before, word in zip(["", *words], words, strict=False)
    ]
    return " ".join(["python -m studies.table", *shown])


def parse_limits(texts: Sequence[str], usual: int, option: str) -> Limits:
    """Read numbers for all models, and for some of them others.

    >>> parse_limits(["5", "ncf=1"], 20, "--splits")
    Limits(usual=5, by_name={'ncf': 1})
    """
    from studies.table.study import Limits

    by_name: dict[str, int] = {}
    for text in (part.strip() for given in texts for part in given.split(",")):
        name, equals, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1 or (equals and not name):
            raise click.BadParameter(
                f"{text!r} is neither a whole number above 0 nor MODEL=NUMBER with one", param_hint=option
            )
        if name:
            by_name[name] = int(number)
        else:
            usual = int(number)
    return Limits(usual, by_name)


def parse_given(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read settings by model.

    >>> parse_given(["svd.cells=sampled", "svd.iterations=5", "sad.bias=true"])
    {'svd': {'cells': 'sampled', 'iterations': 5}, 'sad': {'bias': True}}
    """
    settings: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        model, dot, name = place.partition(".")
        if not (equals and dot and model and name):
            raise click.BadParameter(f"{text!r} is not MODEL.SETTING=VALUE", param_hint="--set")
        try:
            settings.setdefault(model, {})[name] = json.loads(value)
        except json.JSONDecodeError:
            settings.setdefault(model, {})[name] = value
    return settings


if __name__ == "__main__":
    table_command(prog_name="python -m studies.table")
