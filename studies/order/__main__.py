"""``python -m studies.order``: learn the order inside ratings: what it gains and what it costs."""

from pathlib import Path

import click

from studies._options import MOVIELENS, load_ratings, study


@study("order")
@click.option("--splits", type=click.IntRange(min=1), help="Splits for the chosen model.  [default: 3]")
def order_command(
    data_folder: Path | None, output: Path, splits: int | None, quick: bool, num_threads: int, quiet: bool
) -> Path:
    """Learn the order inside ratings: what it gains and what it costs.

    MovieLens 1M (100K when quick), one item of each user left out, a curve over the share of ordered pairs. Interrupted
    with Ctrl-C or killed, the same command continues.
    """
    from studies.order.study import CANDIDATES, SETTINGS, SHARES, order_study

    data = load_ratings(MOVIELENS[1] if quick else MOVIELENS[0], data_folder)
    done = order_study(
        output,
        data,
        shares=(0.0, 0.4) if quick else SHARES,
        candidates=CANDIDATES[:2] if quick else CANDIDATES,
        settings={**SETTINGS, "factors": 16, "iterations": 10} if quick else SETTINGS,
        splits=splits or (1 if quick else 3),
        num_threads=num_threads,
        show_progress=not quiet,
    )
    return done.report


if __name__ == "__main__":
    order_command(prog_name="python -m studies.order")
