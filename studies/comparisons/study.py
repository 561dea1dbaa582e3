"""Stated comparisons: SAD, BPR and Bradley-Terry on what judges said, held-out.

Every model appears once with default settings and once with the penalty that suits the data best, chosen on a
validation part of the first split's training part; all models choose among as many values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import evaluate_comparisons
from studies._tools import Record, Unit, digest, run, settings_of, summarise, whole, write_tables, write_whole

DATA = {
    "passage-crowdbt": "which text is harder to read",
    "imdb-wiki-sbs-subset": "who looks older",
    "llmfao": "which language model answers better",
}
PENALTIES = (0.003, 0.01, 0.02, 0.03, 0.05, 0.08)
ALPHAS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # strongest first: each fit starts where the one before ended
DEFAULTS = {"bradley-terry": {"alpha": 0.01}}
MEASURES = ("accuracy", "log_loss", "brier")

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 1

Fit = Callable[[Comparisons, int, Any, Mapping[str, Any]], Any]

# Comparisons with their judges under True, as said by one judge under False.
Given = Mapping[bool, Comparisons]


@dataclass(frozen=True)
class Contestant:
    """A model of the table.

    Attributes
    ----------
    title
        What the table calls it.
    per_judge
        Whether it knows who said what; otherwise one judge said it all.
    setting
        What is chosen by validation, and from which values.
    values
        Its values.
    fit
        Fits it: ``fit(train, seed, start, settings)``, where ``start`` is a model fitted before or ``None``.
    """

    title: str
    per_judge: bool
    setting: str
    values: tuple[float, ...]
    fit: Fit


def _learner(kind: type[SAD]) -> Fit:
    def fit(train: Comparisons, seed: int, start: Any, settings: Mapping[str, Any]) -> SAD:
        return kind(random_state=seed, num_threads=1, **settings).fit(train, show_progress=False)

    return fit


def bradley_terry(train: Comparisons, alpha: float, start: NDArray[np.float64] | None = None) -> BPR:
    """Fit choix's Bradley-Terry model; it is BPR with nothing but a bias.

    Parameters
    ----------
    train
        Comparisons; who made them does not matter.
    alpha
        Penalty: ``alpha`` times the sum of squared parameters.
    start
        Parameters to start from.

    Raises
    ------
    ImportError
        When choix is not installed, with the command that installs it.

    Examples
    --------
    >>> frame = pl.DataFrame({"winner": ["tea", "tea", "ale"], "loser": ["ale", "ale", "tea"]})
    >>> model = bradley_terry(Comparisons.from_frame(frame, user=None), alpha=1e-6)
    >>> round(float(model.probability(0, "tea", "ale")), 3)
    0.667
    """
    choix = _choix()
    pairs = np.column_stack([train.winner_index, train.loser_index]).tolist()
    bias = choix.opt_pairwise(len(train.items), pairs, alpha=alpha, initial_params=start, tol=1e-4)
    users, items = (np.zeros((len(ids), 1)) for ids in (train.users, train.items))
    return BPR.from_factors(users, items, item_bias=bias, users=train.users, items=train.items)


def _bradley_terry(train: Comparisons, seed: int, start: Any, settings: Mapping[str, Any]) -> BPR:
    known = None if start is None else np.asarray(start.item_bias, np.float64)
    return bradley_terry(train, settings["alpha"], known)


def _choix() -> Any:
    try:
        import choix
    except ImportError as error:
        raise ImportError("the comparison with Bradley-Terry needs choix: pip install choix") from error
    return choix


CONTESTANTS = {
    "bradley-terry": Contestant("Bradley-Terry (choix)", False, "alpha", ALPHAS, _bradley_terry),
    "bpr-one": Contestant("T = 1, one judge", False, "regularization", PENALTIES, _learner(BPR)),
    "sad-one": Contestant("SAD, one judge", False, "regularization", PENALTIES, _learner(SAD)),
    "bpr": Contestant("T = 1, per judge", True, "regularization", PENALTIES, _learner(BPR)),
    "sad": Contestant("SAD, per judge", True, "regularization", PENALTIES, _learner(SAD)),
}


@dataclass(frozen=True, eq=False)
class ComparisonsStudy:
    """The results of the study.

    Attributes
    ----------
    summaries
        By data set: mean and spread of every measure of every model over the splits.
    report
        The Markdown report, with a table per data set.
    """

    summaries: Mapping[str, pl.DataFrame]
    report: Path


def comparisons_study(
    folder: str | Path,
    data_folder: str | Path,
    *,
    names: Sequence[str] = tuple(DATA),
    splits: int = 5,
    show_progress: bool = True,
) -> ComparisonsStudy:
    """Compare SAD with BPR and Bradley-Terry on held-out comparisons, and write tables.

    Parameters
    ----------
    folder
        Where tables and report are written; records of finished fits are kept in ``runs``, and a study that was killed
        continues from them.
    data_folder
        Has ``NAME/comparisons.parquet`` for each data set.
    names
        Data sets.
    splits
        Random splits, 80 % to train on and 20 % held out.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    whole(splits, "splits", least=1)
    _choix()  # say now, not after minutes, that it is missing
    folder = Path(folder)
    everything = {name: _both(Path(data_folder), name) for name in names}
    summaries, pieces = {}, [_INTRODUCTION.format(splits=splits, values=len(PENALTIES))]
    for name, given in everything.items():
        said = given[True]
        facts = f"{len(said):,} comparisons by {len(said.users):,} judges of {len(said.items):,} items"
        chosen = _choose(folder, name, given, show_progress)
        rows = _measured(folder, name, given, chosen, splits, show_progress)
        summaries[name] = summarise(rows, {})
        table = write_tables(folder, name, summaries[name], MEASURES)
        settings = ", ".join(f"{CONTESTANTS[key].title}: {_shown(settings)}" for key, settings in chosen.items())
        pieces.append(f"## {name}: {DATA.get(name, '')}\n\n{facts}.\n\n{table}\nChosen: {settings}.\n")
    report = folder / "report.md"
    write_whole(report, "\n".join(pieces))
    return ComparisonsStudy(summaries, report)


_INTRODUCTION = """# Held-out comparisons

Mean and standard deviation over {splits} random splits, 80 % to train on; ties are left out. A coin has accuracy 50 %
and log loss 0.693. "Chosen" models take the best of {values} penalties by log loss on a fifth of the first split's
training part; the others have default settings (Bradley-Terry: alpha = 0.01).
"""


def _both(data_folder: Path, name: str) -> Given:
    """Read comparisons with their judges (True) and as said by one (False)."""
    path = data_folder / name / "comparisons.parquet"
    if not path.is_file():
        raise FileNotFoundError(f"there are no comparisons {str(path)!r}: name the folder that holds {name}")
    return {True: Comparisons.read(path), False: Comparisons.read(path, user=None)}


def _unit(
    name: str,
    parts: tuple[Comparisons, Comparisons],
    key: str,
    settings: Mapping[str, Any],
    seed: int,
    before: dict[str, Any],
) -> Unit:
    """Return the unit that fits a model to the first part and evaluates it on the second.

    ``before`` holds the last model of each kind, for the next one to start from; without it, they start from nothing.
    """

    def compute() -> Record:
        model = CONTESTANTS[key].fit(parts[0], seed, before.get(key), settings)
        if key in before:
            before[key] = model
        return {"figures": dict(evaluate_comparisons(model, parts[1]))}

    kind = {"sad": SAD, "bpr": BPR}.get(key.partition("-")[0])
    resolved = settings if kind is None else settings_of(kind(random_state=seed, **settings), parts[0])
    identity = {"format": FORMAT, "data": digest(*parts), "model": key, "settings": resolved, "seed": seed}
    return Unit(name, identity, compute)


def _choose(folder: Path, name: str, given: Given, show_progress: bool) -> dict[str, dict[str, float]]:
    """Return the setting of each model that predicts best on a part of the first split's training part."""
    units, places = [], []
    before: dict[str, Any] = dict.fromkeys(CONTESTANTS)
    for key, contestant in CONTESTANTS.items():
        train, _ = given[contestant.per_judge].split(test=0.2, seed=0)
        parts = train.split(test=0.2, seed=1)
        for value in contestant.values:
            settings = {contestant.setting: value}
            units.append(_unit(f"{name}-{key}-validation-{value:g}", parts, key, settings, 0, before))
            places.append((key, settings))
    records = run(folder, units, f"{name}, validation", show_progress=show_progress)
    best: dict[str, tuple[float, dict[str, float]]] = {}
    for (key, settings), record in zip(places, records, strict=True):
        loss = record["figures"]["log_loss"]
        if key not in best or loss < best[key][0]:
            best[key] = loss, settings
    return {key: settings for key, (_, settings) in best.items()}


def _measured(
    folder: Path, name: str, given: Given, chosen: Mapping[str, Mapping[str, float]], splits: int, show_progress: bool
) -> list[tuple[str, dict[str, float | None]]]:
    """Fit every model, with default and with chosen settings, to every split."""
    units, titles = [], []
    for way, ending in (("default", ""), ("chosen", ", chosen")):
        for key, contestant in CONTESTANTS.items():
            settings = chosen[key] if way == "chosen" else DEFAULTS.get(key, {})
            for seed in range(splits):
                parts = given[contestant.per_judge].split(test=0.2, seed=seed)
                units.append(_unit(f"{name}-{key}-{way}-{seed}", parts, key, settings, seed, {}))
                titles.append(contestant.title + ending)
    records = run(folder, units, f"{name}, {splits} splits", show_progress=show_progress)
    return [
        (title, {measure: record["figures"][measure] for measure in MEASURES})
        for title, record in zip(titles, records, strict=True)
    ]


def _shown(settings: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())
