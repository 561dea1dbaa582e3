"""Where ``SAD()`` is behind simple models, on training rows alone: ``python -m studies.comparisons.inner``.

The rows that the study's first split holds out, of either kind, are left out; what remains is cut again. So constants
of the solver can be chosen here, and the test rows of the study stay unseen. Beside every set as it is, its training
rows are thinned, few judges are kept, judges are cut into many, and whole pairings are held out; simulated worlds
(``worlds.py``) add what the sets lack.

``SAD()`` is compared twice. "BT" has the ridge that is best on the very rows that are asked about, which nobody knows
who has the training rows alone: with 120 of them chance decides which ridge that is. "BT alone" has its ridge chosen by
cross-validation of the training rows, which is all that ``SAD()`` has, too.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from sadrec import Comparisons
from studies._options import Study, data_option, output_option, quick_option, quiet_option
from studies._tools import Record, Unit, digest, markdown_table, resumable, run, write_whole
from studies.comparisons.baselines import Predict, bradley_terry, fit_scores, weights_of
from studies.comparisons.models import MODELS as OF_STUDY
from studies.comparisons.models import PENALTIES, Model, Parts, Settings, losses, warm_up
from studies.comparisons.study import SLACK, By, find_sets, parts_of
from studies.comparisons.worlds import WORLDS

SHARES = (1, 2, 4, 8, 16)
LEAST = 150  # rows to learn from
WORDS = 4  # answers of a judge where judges are cut into many
SIMPLE = "coin", "bt"
ALONE = "bt-alone"
FOLDS = 5  # that choose the ridge of BT alone
SEEDS = 2
SMALL = 4000  # rows: of smaller cuts, two seeds

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 1


def _alone(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    """Fit Bradley-Terry with the ridge that predicts held-out training rows best."""
    train = parts.train
    fold = np.random.default_rng((seed, 2)).permutation(len(train)) % FOLDS
    total = np.zeros(len(PENALTIES))
    for number in range(FOLDS):
        rest, held_out = (part(train, np.flatnonzero(rows)) for rows in (fold != number, fold == number))
        for place, scores in enumerate(_path(rest)):
            total[place] += weights_of(held_out) @ losses(bradley_terry(scores)(held_out))
    best = int(np.argmin(total))
    return bradley_terry(_path(train)[best]), {"penalty": PENALTIES[best]}


def _path(train: Comparisons) -> list[NDArray[np.float64]]:
    """Return the scores for every ridge; each fit starts where the one before ended."""
    path: list[NDArray[np.float64]] = []
    for penalty in PENALTIES:
        path.append(fit_scores(train, penalty, path[-1] if path else None))
    return path


MODELS = {**OF_STUDY, ALONE: Model("BT alone", _alone, PENALTIES)}


class Cut(NamedTuple):
    """Rows to learn from, and rows to ask about."""

    name: str
    seed: int
    train: Comparisons
    asked: Comparisons


def part(data: Comparisons, rows: NDArray[Any], user: NDArray[Any] | None = None, users: Any = None) -> Comparisons:
    """Return some rows of comparisons, with all users and items; or with other users."""
    weight = None if data.weight is None else data.weight[rows]
    sides = data.winner_index[rows], data.loser_index[rows]
    who = data.user_index[rows] if user is None else user
    ids = data.users if users is None else users
    return Comparisons.from_indices(who, *sides, users=ids, items=data.items, weight=weight)


def training_rows(data: Comparisons) -> Comparisons:
    """Return the comparisons that the study's first split tests neither by row nor by pairing."""
    number = np.arange(1, 1 + len(data))
    sides = data.user_index, data.winner_index, data.loser_index
    numbered = Comparisons.from_indices(*sides, users=data.users, items=data.items, weight=number)
    known = np.ones(len(data), bool)
    ways: tuple[By, ...] = ("row", "pairing")
    for by in ways:
        known[np.rint(weights_of(parts_of(numbered, 0, by).test)).astype(int) - 1] = False
    return part(data, np.flatnonzero(known))


def cuts_of(name: str, data: Comparisons) -> Iterator[Cut]:
    """Yield what is learnt from and asked about on one set."""
    rows = training_rows(data)
    for seed in range(SEEDS):
        train, asked = rows.split(test=2 / 7, seed=seed)
        order = np.random.default_rng(seed).permutation(len(train))
        for share in SHARES:
            yield Cut(f"{name}/{share}", seed, part(train, np.sort(order[: len(train) // share])), asked)
        if len(rows.users) > 5:
            judges = np.random.default_rng((seed, 1)).permutation(len(rows.users))[: max(len(rows.users) // 10, 2)]
            train_few, asked_few = (part(side, np.isin(side.user_index, judges)) for side in (train, asked))
            yield Cut(f"{name}, few judges", seed, train_few, asked_few)
            yield Cut(f"{name}, many judges", seed, *_many_judges(train, asked))
        apart, asked = rows.split(test=2 / 7, seed=seed, by="pairing")
        order = np.random.default_rng(seed).permutation(len(apart))
        for share in SHARES[::2]:
            yield Cut(f"{name}/{share}, pairings", seed, part(apart, np.sort(order[: len(apart) // share])), asked)


def _many_judges(train: Comparisons, asked: Comparisons) -> tuple[Comparisons, Comparisons]:
    """Cut every judge into judges of a few answers each, those that are asked about included."""
    user = np.concatenate((train.user_index, asked.user_index)).astype(np.int64)
    mixed = np.random.default_rng(0).permutation(len(user))
    mixed = mixed[np.argsort(user[mixed], kind="stable")]
    place = np.arange(len(user)) - np.searchsorted(user[mixed], user[mixed])
    judge = np.empty(len(user), np.int64)
    judge[mixed] = user[mixed] * len(user) + place // WORDS
    ids, judge = np.unique(judge, return_inverse=True)
    sides = zip((train, asked), np.split(judge, [len(train)]), strict=True)
    first, second = (part(side, np.arange(len(side)), who, np.arange(len(ids))) for side, who in sides)
    return first, second


def worlds() -> Iterator[Cut]:
    """Yield the simulated worlds."""
    for name, make in WORLDS.items():
        for seed in range(SEEDS):
            yield Cut(f"world: {name}", seed, *make(np.random.default_rng((seed, len(name)))))


def all_cuts(data_folder: Path, sets: Sequence[str], only: Sequence[str], most: int | None) -> Iterator[Cut]:
    """Yield every cut of every set, then the worlds; large ones with one seed."""
    for cut in _all_cuts(data_folder, sets, most):
        if not only or any(text in cut.name for text in only):
            yield cut


def _all_cuts(data_folder: Path, sets: Sequence[str], most: int | None) -> Iterator[Cut]:
    known = find_sets(data_folder, [name for name in sets if name != "worlds"]) if sets != ["worlds"] else {}
    for name, path in known.items():
        data = Comparisons.read(path, ties="drop")
        if most is not None and len(data) > most:
            data, _ = data.split(test=1 - most / len(data), seed=0)
        for cut in cuts_of(name, data):
            if len(cut.train) >= LEAST and (cut.seed == 0 or len(cut.train) < SMALL):
                yield cut
    if not sets or "worlds" in sets:
        yield from worlds()


def _unit(cut: Cut, model: str, label: str) -> Unit:
    def compute() -> Record:
        warm_up()
        start = time.perf_counter()
        # Bradley-Terry has its ridge chosen on the rows that are asked about: the hardest it could be to match.
        predict, _ = MODELS[model].fit(Parts(cut.train, cut.asked, cut.asked), cut.seed)
        seconds = time.perf_counter() - start
        weight = weights_of(cut.asked)
        loss = losses(predict(cut.asked)) * weight / weight.mean()
        return {"seconds": seconds, "losses": [float(f"{value:.5g}") for value in loss]}

    tried = MODELS[model].tried
    identity = {"format": FORMAT, "data": digest(cut.train, cut.asked), "model": model, "tried": tried, "label": label}
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{cut.name} {cut.seed} {model}{label}")
    return Unit(name, identity, compute)


def inner_study(
    folder: Path,
    data_folder: Path,
    *,
    sets: Sequence[str] = (),
    only: Sequence[str] = (),
    models: Sequence[str] = ("sad",),
    label: str = "",
    most: int | None = None,
    show_progress: bool = True,
) -> dict[str, dict[str, Any]]:
    """Fit models to every cut and write ``inner.md``; ``label`` tells the records of one version from another's.

    What is behind is the last of the models.
    """
    shown = [*SIMPLE, ALONE, *models]
    simple = *SIMPLE, ALONE
    cuts = list(all_cuts(data_folder, sets, only, most))
    units = [_unit(cut, model, "" if model in simple else label) for cut in cuts for model in shown]
    records = iter(run(folder, units, "cuts", show_progress=show_progress))
    gathered: dict[str, list[tuple[Any, ...]]] = {}
    for cut in cuts:
        by_model = {model: np.array(next(records)["losses"]) for model in shown}
        mean = [float(by_model[model].mean()) for model in shown]
        entry = [len(cut.train), *mean]
        for bt in SIMPLE[1], ALONE:
            best = min((by_model[model] for model in ("coin", bt)), key=lambda loss: float(loss.mean()))
            difference = by_model[models[-1]] - best
            entry += [difference.mean(), difference.var() / len(difference)]
        gathered.setdefault(cut.name, []).append(tuple(entry))
    table = {}
    for name, entries in gathered.items():
        names = "rows", *shown, "behind", "error", "behind_alone", "error_alone"
        figures = dict(zip(names, np.mean(entries, axis=0).tolist(), strict=True))
        for error in ("error", "error_alone"):
            figures[error] = float(np.sqrt(figures[error] / len(entries)))
        table[name] = figures
    write_whole(folder / f"inner{label}.md", _report(table, shown))
    return table


def _report(table: dict[str, dict[str, Any]], shown: Sequence[str]) -> str:
    ways = {"BT": ("behind", "error"), "BT alone": ("behind_alone", "error_alone")}
    titles = [MODELS[model].title for model in shown]
    header = ["cut", "rows", *titles, *(f"behind {bt} or a coin" for bt in ways), *(f"too far: {bt}" for bt in ways)]
    rows = [
        [
            name,
            f"{entry['rows']:,.0f}",
            *(f"{entry[model]:.4f}" for model in shown),
            *(f"{entry[behind]:+.4f} ± {entry[error]:.4f}" for behind, error in ways.values()),
            *(f"{entry[behind] - SLACK:.4f}" if entry[behind] > SLACK else "" for behind, _ in ways.values()),
        ]
        for name, entry in table.items()
    ]
    return markdown_table(header, rows, range(1, len(header))) + "\n"


@click.command("inner", cls=Study)
@data_option
@output_option("inner-study")
@click.option("--sets", help='Only these data sets, or "worlds", with commas between them.  [default: all]')
@click.option("--only", help="Only cuts whose name has one of these, with commas between them.")
@click.option("--models", "model_names", default="sad", show_default=True, help="Beside a coin and BT.")
@click.option("--label", default="", help="Keep records beside those of other versions of the solver.")
@quick_option
@quiet_option
def inner_command(
    data_folder: Path | None,
    output: Path,
    sets: str | None,
    only: str | None,
    model_names: str,
    label: str,
    quick: bool,
    quiet: bool,
) -> None:
    """Predict held-out training rows, thinned and cut in several ways, and tell where SAD() is behind BT or a coin."""
    if data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    names, texts, models = (
        [part.strip() for part in (text or "").split(",") if part.strip()] for text in (sets, only, model_names)
    )
    for model in models:
        if model not in MODELS:
            raise click.BadParameter(f"{model!r} is none of {', '.join(MODELS)}", param_hint="--models")
    most = 2000 if quick else None
    with resumable(output):
        inner_study(
            output, data_folder, sets=names, only=texts, models=models, label=label, most=most, show_progress=not quiet
        )
    click.echo((output / f"inner{label}.md").read_text())


if __name__ == "__main__":
    inner_command(prog_name="python -m studies.comparisons.inner")
