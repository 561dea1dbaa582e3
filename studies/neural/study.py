"""Does a network win over SAD? The same splits, settings chosen on validation rows, several seeds.

Comparisons: half to learn from, a fifth to choose settings and stop on, the rest to test (as in studies.comparisons).
Interactions: a fifth of everybody's to test, a tenth of the rest to choose settings on. The linear model is the network
without its hidden layer, trained by the same program: what it lacks is the network, what it has beyond SAD() is nothing
but the optimiser and the choice of settings.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import SAD, Comparisons, Interactions
from sadrec.evaluation import evaluate_top_n
from studies._options import load_ratings
from studies._tools import Record, Unit, digest, markdown_table, paired, plain, run, write_whole
from studies.baselines import BaselineError
from studies.baselines.environments import environment_of, installed
from studies.baselines.processes import run_logged, tail
from studies.comparisons.models import MODELS as COMPARISON_MODELS
from studies.comparisons.models import Parts, losses, warm_up
from studies.comparisons.study import find_sets, parts_of
from studies.neural import network

Settings = Mapping[str, Any]
SETS = ("pokemon", "gambles-2012", "nfl-season", "sushi-users")
LISTS = "movielens-100k"
TITLES = {"sad": "SAD()", "linear": "linear part alone", "network": "network"}

_COMMON: Settings = {"num_threads": 1, "decay": 0.01}
_HIDDEN = {"linear": 0, "network": 64}
TRIED: Sequence[Settings] = [
    {"factors": factors, "regularization": l2, "learning_rate": 0.01, "epochs": 100, "patience": 6}
    for factors in (8, 32)
    for l2 in (0.001, 0.01)
]
"""Settings tried on comparisons."""
LISTS_TRIED: Sequence[Settings] = [
    {"factors": 64, "regularization": l2, "learning_rate": 0.005, "epochs": 30, "patience": 0, "candidates": 4}
    for l2 in (0.003, 0.01, 0.03)
]
"""Settings tried on interactions."""

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 1
TIMEOUT = 1800.0


def torch_python() -> Path:
    """Return the Python that has PyTorch: that of the environment "neural", or this one.

    Raises
    ------
    BaselineError
        When neither has it.
    """
    environment = environment_of("neural")
    python = None if environment is None else installed(environment)
    if python is not None:
        return python
    if find_spec("torch") is not None:
        return Path(sys.executable)
    raise BaselineError("there is no PyTorch: run `python -m studies.baselines install neural`, or pip install torch")


def fitted(arrays: Mapping[str, Any], settings: Settings) -> dict[str, NDArray[Any]]:
    """Run the program of :mod:`studies.neural.network` and return its answers."""
    with tempfile.TemporaryDirectory(prefix="sadrec-neural-") as name:
        folder = Path(name)
        np.savez(folder / network.ARRAYS, **arrays)
        (folder / network.SETTINGS).write_text(json.dumps(plain(dict(settings))), encoding="utf-8")
        log = folder / "log.txt"
        if code := run_logged([torch_python(), "-I", network.__file__, folder], log, timeout=TIMEOUT):
            raise BaselineError(f"the network failed (exit code {code}): {tail(log, lines=3)}")
        with np.load(folder / network.ANSWERS, allow_pickle=False) as answers:
            return {key: answers[key] for key in answers.files}


def _whole_settings(model: str, settings: Settings, seed: int) -> dict[str, Any]:
    return {**_COMMON, **settings, "hidden": _HIDDEN[model], "seed": seed}


# -- comparisons ------------------------------------------------------------------------------------------------------


def comparisons_unit(name: str, parts: Parts, model: str, settings: Settings, seed: int) -> Unit:
    """Return the unit that fits a model to comparisons and keeps what it loses on every test row."""

    def compute() -> Record:
        start = time.perf_counter()
        if model == "sad":
            warm_up()
            start = time.perf_counter()
            predict, _ = COMPARISON_MODELS["sad"].fit(parts, seed)
            seconds = time.perf_counter() - start
            lost = {part: losses(predict(getattr(parts, part))) for part in ("validation", "test")}
        else:
            answers = fitted(_arrays(parts), _whole_settings(model, settings, seed))
            seconds = float(answers["seconds"])
            lost = {part: np.logaddexp(0, -answers[part].astype(np.float64)) for part in ("validation", "test")}
        return {
            "validation": float(lost["validation"].mean()),
            "rows": [float(f"{value:.7g}") for value in lost["test"]],
            "seconds": seconds,
        }

    return _unit(name, digest(parts.train, parts.validation, parts.test), model, settings, seed, compute)


def _arrays(parts: Parts) -> dict[str, Any]:
    out: dict[str, Any] = {"shape": np.array([len(parts.train.users), len(parts.train.items)])}
    for part in ("train", "validation", "test"):
        data: Comparisons = getattr(parts, part)
        out |= {f"{part}_user": data.user_index, f"{part}_winner": data.winner_index, f"{part}_loser": data.loser_index}
    return out


# -- interactions -----------------------------------------------------------------------------------------------------


class _Answers:
    """The scores of a network, as an evaluation asks for them."""

    def __init__(self, data: Interactions, scores: NDArray[Any]) -> None:
        self.users, self.items, self.matrix = data.users, data.items, scores

    def scores(self, users: Any, /) -> NDArray[Any]:
        """Return the rows of some users; ids are sorted."""
        return np.asarray(self.matrix[np.searchsorted(self.users, users)])


def interactions_unit(name: str, data: Interactions, model: str, settings: Settings, seed: int) -> Unit:
    """Return the unit that fits a model to interactions and keeps the nDCG@10 of every user."""
    rest, test = data.split(test=0.2, seed=seed)
    train, validation = rest.split(test=0.1, seed=seed)

    def compute() -> Record:
        start = time.perf_counter()
        answers: Any
        if model == "sad":
            answers = SAD(num_threads=1, random_state=seed).fit(train, show_progress=False)
            seconds = time.perf_counter() - start
        else:
            arrays = {
                "shape": np.array(train.shape),
                "indptr": train.matrix.indptr.astype(np.int64),
                "indices": train.matrix.indices.astype(np.int64),
            }
            found = fitted(arrays, _whole_settings(model, settings, seed))
            answers, seconds = _Answers(train, found["scores"]), float(found["seconds"])
        rows = evaluate_top_n(answers, train, test, N=10, seed=seed).per_user["ndcg"]
        return {
            # less is better, as with losses
            "validation": -float(evaluate_top_n(answers, train, validation, N=10, seed=seed)["ndcg"]),
            "rows": [float(f"{value:.7g}") for value in rows],
            "seconds": seconds,
        }

    return _unit(name, digest(train, validation, test), model, settings, seed, compute)


def _unit(name: str, data: list[str], model: str, settings: Settings, seed: int, compute: Any) -> Unit:
    identity = {"format": FORMAT, "data": data, "model": model, "settings": plain(dict(settings)), "seed": seed}
    shown = "".join(f"-{settings[key]}" for key in ("factors", "regularization") if key in settings)
    return Unit(f"{name}-{model}{shown}-{seed}", identity, compute)


# -- the study --------------------------------------------------------------------------------------------------------


def neural_study(
    folder: Path,
    data_folder: Path | None,
    *,
    sets: Sequence[str] = (*SETS, LISTS),
    seeds: Sequence[int] = (0, 1, 2),
    most: int | None = None,
    tried: Sequence[Settings] = TRIED,
    lists_tried: Sequence[Settings] = LISTS_TRIED,
    show_progress: bool = True,
) -> str:
    """Fit SAD(), the linear part alone and the network to every set; write ``report.md`` and return it.

    Parameters
    ----------
    folder
        Where the report is written; records of finished fits are kept in ``runs``, and a study that was killed
        continues from them.
    data_folder
        Has the sets of comparisons.
    sets
        Names of sets of comparisons, or "movielens-100k".
    seeds
        Of the splits and of the models; settings are chosen on the validation rows of the first.
    most
        Take at most so many comparisons, and the interactions of no more than a tenth as many users.
    tried, lists_tried
        Settings that the linear part and the network choose among, of comparisons and of interactions.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    torch_python()
    rows, chosen = [], []
    for name in sets:
        data = _data(name, data_folder, most)
        results = {}
        for model in TITLES:
            settings: Settings = {}
            if model != "sad":
                grid = lists_tried if name == LISTS else tried
                trials = [unit_of(name, data, model, one, seeds[0]) for one in grid]
                found = run(folder, trials, f"{name}, {model}, trials", show_progress=show_progress)
                settings = grid[int(np.argmin([record["validation"] for record in found]))]
                which = {key: settings[key] for key in ("factors", "regularization")}
                chosen.append(f"- {name}, {TITLES[model]}: {which}")
            units = [unit_of(name, data, model, settings, seed) for seed in seeds]
            results[model] = run(folder, units, f"{name}, {model}", show_progress=show_progress)
        rows.append(_row(name, results))
    measures = "log loss of held-out comparisons (less is better), nDCG@10 of MovieLens (more is better)"
    header = ["set", *TITLES.values(), "network less SAD()", "network less linear", "seconds"]
    kind = f"mean of {len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    pieces = [
        f"{measures[0].upper()}{measures[1:]}; {kind}.\n",
        markdown_table(header, rows, range(1, len(header))) + "\n",
    ]
    pieces.append("Chosen on the validation rows of the first seed:\n\n" + "\n".join(chosen) + "\n")
    page = "\n".join(pieces)
    write_whole(folder / "report.md", page)
    return page


def _data(name: str, data_folder: Path | None, most: int | None) -> Interactions | Comparisons:
    if name == LISTS:
        ratings = load_ratings(name, data_folder)
        return ratings if most is None else ratings.filter(top_users=max(2, most // 10))
    if data_folder is None:
        raise ValueError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    comparisons = Comparisons.read(find_sets(data_folder, [name])[name], ties="drop")
    if most is not None and len(comparisons) > most:
        comparisons, _ = comparisons.split(test=1 - most / len(comparisons), seed=0)
    return comparisons


def unit_of(name: str, data: Interactions | Comparisons, model: str, settings: Settings, seed: int) -> Unit:
    """Return the unit that fits a model to a split of the data."""
    if isinstance(data, Interactions):
        return interactions_unit(name, data, model, settings, seed)
    return comparisons_unit(name, parts_of(data, seed, "row"), model, settings, seed)


def _row(name: str, results: Mapping[str, Sequence[Record]]) -> list[str]:
    mean = {model: np.mean([np.mean(record["rows"]) for record in records]) for model, records in results.items()}
    seconds = [np.mean([record["seconds"] for record in records]) for records in results.values()]
    rows = {model: [record["rows"] for record in records] for model, records in results.items()}
    compared = [paired(rows["network"], rows[model]) for model in ("sad", "linear")]
    return [
        name,
        *(f"{value:.4f}" for value in mean.values()),
        *(f"{difference:+.4f} ± {error:.4f}" for difference, error in compared),
        " / ".join(f"{value:.0f}" for value in seconds),
    ]
