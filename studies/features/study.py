"""What features are worth: lists of items, and for users, that nobody has seen, and battles of unseen Pokemon.

Who is new is drawn before anything is tuned. A model with several settings chooses among them inside the training part
of the first seed, where another tenth is taken out in the same way; test rows are looked at once.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sadrec import Comparisons
from sadrec.evaluation import evaluate_top_n
from studies._tools import Record, Unit, digest, fingerprint, markdown_table, paired, plain, run, write_whole
from studies.baselines import BaselineError
from studies.comparisons.models import losses, warm_up
from studies.features import splits
from studies.features.battles import BATTLE_MODELS, Settings
from studies.features.data import Featured, movielens, pokemon, simulated
from studies.features.models import MODELS, Scores
from studies.features.splits import Battles, Split

TASKS: Mapping[str, Callable[[Any, int], Split]] = {
    "items": splits.cold_items,
    "users": splits.cold_users,
    "warm": splits.warm,
}
HEADINGS = {"items": "new items", "users": "new users", "warm": "everybody known"}
BATTLE_HEADINGS = {"seen": "both seen", "one": "one unseen", "both": "both unseen", "unseen": "one or both unseen"}
OURS = "sad-features"
# Seeds of the inner splits, which no test split has.
INNER = 1000

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT, BATTLE_FORMAT = 2, 3


@dataclass(frozen=True, eq=False)
class _Answers:
    """The scores of a model, as an evaluation asks for them."""

    users: Any
    items: Any
    matrix: Scores

    def scores(self, users: Any, /) -> Scores:
        """Return the rows of some users; ids are sorted."""
        return np.asarray(self.matrix[np.searchsorted(self.users, users)])


@dataclass(frozen=True)
class Figures:
    """What a model came to on one task: means over seeds of a measure, of its values per row, and of seconds."""

    value: float
    seconds: float
    rows: Sequence[Sequence[float]]
    chosen: Settings


Table = Mapping[tuple[str, str], Figures]


# -- lists ------------------------------------------------------------------------------------------------------------


def list_unit(featured: Featured, split: Split, model: str, settings: Settings, seed: int, name: str) -> Unit:
    """Return the unit that fits a model and keeps the nDCG@10 of every user with something to find."""

    def compute() -> Record:
        start = time.perf_counter()
        try:
            predict = MODELS[model].fit(split, featured, settings, seed)
        except (BaselineError, ImportError) as error:
            return {"missing": str(error).splitlines()[0]}
        seconds = time.perf_counter() - start
        answers = _Answers(split.test.users, split.test.items, predict())
        found = evaluate_top_n(answers, split.met, split.test, N=10, seed=seed)
        rows = [float(f"{value:.5g}") for value in found.per_user["ndcg"]]
        return {"value": float(found["ndcg"]), "seconds": seconds, "rows": rows}

    identity = {
        "format": FORMAT,
        "data": digest(split.train, split.test),
        "features": [_digest(featured.items), _digest(featured.users)],
        "model": model,
        "settings": plain(dict(settings)),
        "seed": seed,
    }
    return Unit(f"{featured.name}-{name}", identity, compute)


def _digest(frame: pl.DataFrame | None) -> str:
    return "" if frame is None else fingerprint(np.array([repr(row) for row in frame.rows()]))


def lists_study(
    folder: Path,
    featured: Featured,
    *,
    models: Sequence[str] = tuple(MODELS),
    tasks: Sequence[str] = tuple(TASKS),
    seeds: Sequence[int] = (0, 1, 2),
    tuned_on: Featured | None = None,
    show_progress: bool = True,
) -> tuple[Table, dict[str, str]]:
    """Fit every model to every split of a data set; return the figures by (model, task), and what is missing.

    Settings are chosen on training rows of ``tuned_on``, a smaller data set of the kind, if there is one.
    """
    trained = tuned_on or featured
    table: dict[tuple[str, str], Figures] = {}
    missing: dict[str, str] = {}
    for task in tasks:
        if task == "users" and featured.users is None:
            missing["new users"] = "the data set here has no features of users"
            continue
        parts = {seed: TASKS[task](featured.data, seed) for seed in seeds}
        inner = TASKS[task](TASKS[task](trained.data, seeds[0]).train, INNER)
        for model in models:
            if model not in MODELS or task not in MODELS[model].tasks:
                continue
            if model == "truth" and featured.truth is None:
                continue
            tried = MODELS[model].tried

            trials = [
                list_unit(trained, inner, model, settings, INNER, f"{task}-{model}-trial{place}-{INNER}")
                for place, settings in enumerate(tried if len(tried) > 1 else ())
            ]
            title = f"{featured.name}, {HEADINGS[task]}, {model}"
            found = run(folder, trials, f"{title}, trials", show_progress=show_progress) if trials else []
            if any("missing" in record for record in found):
                missing[MODELS[model].title] = next(record["missing"] for record in found if "missing" in record)
                continue
            best = max(range(len(found)), key=lambda place: found[place]["value"]) if found else 0
            units = [
                list_unit(featured, part, model, tried[best], seed, f"{task}-{model}-{seed}")
                for seed, part in parts.items()
            ]
            records = run(folder, units, title, show_progress=show_progress)
            if "missing" in records[0]:
                missing[MODELS[model].title] = records[0]["missing"]
                continue
            table[model, task] = _figures(records, tried[best])
    return table, missing


def _figures(records: Sequence[Record], chosen: Settings) -> Figures:
    mean = {key: float(np.mean([record[key] for record in records])) for key in ("value", "seconds")}
    return Figures(mean["value"], mean["seconds"], [record["rows"] for record in records], chosen)


# -- battles ----------------------------------------------------------------------------------------------------------


def battle_unit(battles: Battles, features: pl.DataFrame, model: str, settings: Settings, seed: int, name: str) -> Unit:
    """Return the unit that fits a model and keeps the log loss of every test row."""

    def compute() -> Record:
        warm_up()
        start = time.perf_counter()
        try:
            predict = BATTLE_MODELS[model].fit(battles.train, features, settings, seed)
        except ImportError as error:
            return {"missing": str(error).splitlines()[0]}
        seconds = time.perf_counter() - start
        rows = {
            part: [float(f"{value:.7g}") for value in losses(predict(getattr(battles, part)))]
            for part in ("seen", "one", "both")
        }
        return {"seconds": seconds, **rows, "unseen": rows["one"] + rows["both"]}

    identity = {
        "format": BATTLE_FORMAT,
        "data": digest(battles.train, battles.seen, battles.one, battles.both),
        "features": _digest(features),
        "model": model,
        "settings": plain(dict(settings)),
        "seed": seed,
    }
    return Unit(f"pokemon-{name}", identity, compute)


def battles_study(
    folder: Path,
    data: Comparisons,
    features: pl.DataFrame,
    *,
    models: Sequence[str] = tuple(BATTLE_MODELS),
    seeds: Sequence[int] = (0, 1, 2),
    show_progress: bool = True,
) -> tuple[Table, dict[str, str]]:
    """Fit every model to every split of comparisons; return the figures by (model, part), and what is missing."""
    table: dict[tuple[str, str], Figures] = {}
    missing: dict[str, str] = {}
    parts = {seed: splits.unseen_items(data, seed) for seed in seeds}
    # What the first seed has not seen is not seen here either: only its training rows are cut again.
    inner = splits.unseen_items(parts[seeds[0]].train, INNER)
    for model in (model for model in models if model in BATTLE_MODELS):
        tried = BATTLE_MODELS[model].tried
        best = 0
        if len(tried) > 1:
            trials = [
                battle_unit(inner, features, model, settings, INNER, f"{model}-trial{place}")
                for place, settings in enumerate(tried)
            ]
            found = run(folder, trials, f"pokemon, {model}, trials", show_progress=show_progress)
            best = min(range(len(tried)), key=lambda place: float(np.mean(found[place]["unseen"])))
        units = [
            battle_unit(part, features, model, tried[best], seed, f"{model}-{seed}") for seed, part in parts.items()
        ]
        records = run(folder, units, f"pokemon, {model}", show_progress=show_progress)
        if "missing" in records[0]:
            missing[BATTLE_MODELS[model].title] = records[0]["missing"]
            continue
        for part in BATTLE_HEADINGS:
            of_part = [
                {"value": float(np.mean(record[part])), "seconds": record["seconds"], "rows": record[part]}
                for record in records
            ]
            table[model, part] = _figures(of_part, tried[best])
    return table, missing


# -- the report -------------------------------------------------------------------------------------------------------


def report(
    name: str,
    table: Table,
    missing: Mapping[str, str],
    titles: Mapping[str, str],
    headings: Mapping[str, str],
    measure: str,
    seeds: int,
) -> str:
    """Return one table in Markdown, the settings chosen, and how the model with features compares."""
    columns = [key for key in headings if any(task == key for _, task in table)]
    rows = []
    for model, title in titles.items():
        known = [table[model, key] for key in columns if (model, key) in table]
        if known:
            cells = [f"{table[model, key].value:.4f}" if (model, key) in table else "" for key in columns]
            rows.append([title, *cells, f"{np.mean([one.seconds for one in known]):.1f}"])
    header = ["model", *(headings[key] for key in columns), "seconds"]
    kind = "mean" if seeds > 1 else "value"
    pieces = [f"## {name}: {measure}, {kind} of {seeds} {'seeds' if seeds > 1 else 'seed'}\n"]
    pieces.append(markdown_table(header, rows, range(1, len(header))) + "\n")
    lines = [f"- {heading}: {why}" for heading, why in missing.items()]
    lines += [
        f"- {titles[model]} ({headings[key]}): chose {dict(figures.chosen)}"
        for (model, key), figures in table.items()
        if figures.chosen and key in (columns[0], "warm", "users")
    ]
    for key in columns:
        if (OURS, key) in table:
            for model in titles:
                if model != OURS and (model, key) in table:
                    difference, error = paired(table[OURS, key].rows, table[model, key].rows)
                    lines.append(
                        f"- {headings[key]}: {titles[OURS]} less {titles[model]}: {difference:+.4f} ± {error:.4f}"
                    )
    if lines:
        pieces.append("\n".join(lines) + "\n")
    return "\n".join(pieces)


def features_study(
    folder: Path,
    data_folder: Path | None,
    datasets: Sequence[str],
    *,
    models: Sequence[str] = (),
    tasks: Sequence[str] = tuple(TASKS),
    seeds: Sequence[int] = (0, 1, 2),
    tuned_on: str | None = None,
    share: float = 1.0,
    most: int | None = None,
    show_progress: bool = True,
) -> str:
    """Run the study of some data sets and write a page for each, ``NAME.md``; return the pages.

    Parameters
    ----------
    folder
        Where pages are written; records of finished fits are kept in ``runs``, and a study that was killed continues
        from them.
    data_folder
        Has a folder for each data set; without it MovieLens is fetched.
    datasets
        "movielens-100k", "movielens-1m", "simulated" or "pokemon".
    models, tasks
        Names; all when empty.
    seeds
        Of the splits and of the models.
    tuned_on
        The data set on whose training rows settings are chosen for lists; None for each on its own.
    share
        Take a random share of the users of MovieLens.
    most
        Take at most so many comparisons, and no more than a tenth as many users.
    show_progress
        Whether to show progress bars (on a terminal).
    """
    pages = []
    for name in datasets:
        if name == "pokemon":
            if data_folder is None:
                raise ValueError("name the folder that holds the battles: --data FOLDER, or set SADREC_DATA")
            data, features = pokemon(data_folder)
            if most is not None and len(data) > most:
                data, _ = data.split(test=1 - most / len(data), seed=0)
            chosen = list(models or BATTLE_MODELS)
            table, missing = battles_study(
                folder, data, features, models=chosen, seeds=seeds, show_progress=show_progress
            )
            titles = {key: model.title for key, model in BATTLE_MODELS.items()}
            page = report(name, table, missing, titles, BATTLE_HEADINGS, "log loss", len(seeds))
        else:
            featured = simulated() if name == "simulated" else movielens(name, data_folder)
            if share < 1:
                featured = Featured(name, splits.some_users(featured.data, share), featured.items, featured.users)
            if most is not None:
                people = featured.data.filter(top_users=max(2, most // 10))
                featured = Featured(name, people, featured.items, featured.users)
            chosen = list(models or MODELS)
            table, missing = lists_study(
                folder,
                featured,
                models=chosen,
                tasks=tasks,
                seeds=seeds,
                tuned_on=None if tuned_on is None else movielens(tuned_on, data_folder),
                show_progress=show_progress,
            )
            titles = {key: model.title for key, model in MODELS.items()}
            page = report(name, table, missing, titles, HEADINGS, "nDCG@10", len(seeds))
            if share < 1:
                page += f"\nA random {100 * share:g} % of the users: {featured.data}.\n"
            if tuned_on is not None:
                page += f"\nSettings were chosen on training rows of {tuned_on}.\n"
        write_whole(folder / f"{name}.md", page)
        pages.append(page)
    return "\n".join(pages)
