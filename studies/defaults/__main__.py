"""``python -m studies.defaults``: compare the defaults of SAD with alternatives, on validation data."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click
import numpy as np

from sadrec import Interactions
from studies._options import MOVIELENS, load_ratings, study
from studies.top_n.published import load_gowalla

FOOD = "food-com-loo00"


def some_users(data: Interactions, count: int, seed: int) -> Interactions:
    """Return what so many users did, drawn at random."""
    kept = np.sort(np.random.default_rng(seed).permutation(data.shape[0])[:count])
    return Interactions.from_csr(data.matrix[kept], data.users[kept], data.items)


# Parts of the data sets: thinned, or the active users and popular items. The rules were drawn on some of them, too; not
# on those called "few", which were made later to see how the rules do on what they have not seen.
PARTS: Mapping[str, tuple[str, Callable[[Interactions], Interactions]]] = {
    "movielens-1m-quarter": ("movielens-1m", lambda data: data.split(test=0.75, seed=0)[0]),
    "movielens-1m-tenth": ("movielens-1m", lambda data: data.split(test=0.9, seed=0)[0]),
    "food-com-core": (FOOD, lambda data: data.filter(10, 10, until_stable=True)),
    "gowalla-core": ("gowalla", lambda data: data.filter(10, 40, until_stable=True)),
    "movielens-1m-few": ("movielens-1m", lambda data: some_users(data, 1_500, 7)),
    "movielens-1m-few-third": (
        "movielens-1m",
        lambda data: some_users(data, 1_500, seed=8).split(test=2 / 3, seed=8)[0],
    ),
    "gowalla-quarter": ("gowalla", lambda data: data.split(test=0.75, seed=0)[0]),
    "gowalla-tenth": ("gowalla", lambda data: some_users(data, 3_000, seed=5)),
    "gowalla-few": ("gowalla", lambda data: some_users(data, 5_000, 7).filter(1, 3)),
}
TRAINING = (*MOVIELENS, FOOD, *PARTS, "gowalla")


def load_training(name: str, data_folder: Path | None) -> Interactions:
    """Load what may be trained on: a published training part, the first 80/20 split of MovieLens, or a part of it."""
    if name in PARTS:
        whole, part = PARTS[name]
        return part(load_training(whole, data_folder)).filter(min_per_user=1, min_per_item=1)
    if name in MOVIELENS:
        return load_ratings(name, data_folder).split(test=0.2, seed=0)[0]
    if name == "gowalla":
        return load_gowalla(data_folder).train
    from studies._published import load_split

    if data_folder is None or not (data_folder / name).is_dir():
        raise click.UsageError(f"{name} cannot be fetched: put it into a folder and name that folder, --data FOLDER")
    return load_split(data_folder / name)[0]


@study("defaults")
@click.option("--name", "names", multiple=True, type=click.Choice(TRAINING), help="Only this data set.")
@click.option(
    "--change", "changes", multiple=True, help="Only this change to the defaults; may be given several times."
)
def defaults_command(
    data_folder: Path | None,
    output: Path,
    names: tuple[str, ...],
    changes: tuple[str, ...],
    quick: bool,
    num_threads: int,
    quiet: bool,
) -> Path:
    """Compare the defaults of SAD with alternatives, on validation data.

    Interrupted with Ctrl-C or killed, the same command continues.
    """
    from studies.defaults.study import CANDIDATES, defaults_study

    if odd := [change for change in changes if change not in CANDIDATES]:
        raise click.UsageError(f"there is no change {odd[0]!r}: there are {', '.join(CANDIDATES)}")
    kept = ("default settings", *changes) if changes else list(CANDIDATES)[: 2 if quick else None]
    data = {name: load_training(name, data_folder) for name in names or (TRAINING[1:2] if quick else TRAINING)}
    candidates = {name: CANDIDATES[name] for name in kept}
    done = defaults_study(output, data, candidates=candidates, num_threads=num_threads, show_progress=not quiet)
    return done.report


if __name__ == "__main__":
    defaults_command(prog_name="python -m studies.defaults")
