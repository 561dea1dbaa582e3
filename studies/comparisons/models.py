"""The models of the table, each with the way its settings are chosen on the validation part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from sadrec import BPR, SAD, Comparisons
from sadrec.posterior import GibbsSAD
from studies.comparisons.baselines import (
    Doubles,
    Predict,
    blade_chest,
    bradley_terry,
    fit_scores,
    frequency_table,
    personal_bradley_terry,
    weights_of,
)

Fitted = TypeVar("Fitted")
Settings = Mapping[str, Any]

# Strongest first: the next fit starts where the one before ended.
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
OWN_PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03)
SKEW_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
RANKS = (4,)

# What is tried for SAD: its default settings; the variational solver with other factors and sweeps; SGD by penalties.
TRIED: tuple[Settings, ...] = (
    {},
    {"factors": 16},
    {"iterations": 30},
    {"iterations": 120},
    *(
        {"solver": "sgd", "factors": 16, "regularization": l2, "rival_regularization": l1}
        for l2, l1 in ((0.003, 0.001), (0.003, 0.0001), (0.01, 0.001), (0.01, 0.0001))
    ),
)


@dataclass(frozen=True)
class Parts:
    """A part to learn from, one to choose settings on, and one to be asked about once."""

    train: Comparisons
    validation: Comparisons
    test: Comparisons


@dataclass(frozen=True)
class Model:
    """A model of the table.

    Attributes
    ----------
    title
        What the table calls it.
    fit
        Fits it to the training part, choosing on the validation part: ``fit(parts, seed)`` gives the predictions and
        the settings chosen.
    tried
        The settings it chooses among: its result depends on them.
    """

    title: str
    fit: Callable[[Parts, int], tuple[Predict, Settings]]
    tried: Any = ()


def losses(p: Doubles) -> Doubles:
    """Return the log loss of every comparison whose winner had probability p."""
    return np.asarray(-np.log(np.maximum(p, 1e-12)))


def mean_loss(predict: Predict, data: Comparisons) -> float:
    """Return the mean log loss, by weight."""
    return float(np.average(losses(predict(data)), weights=weights_of(data)))


def best(candidates: Iterable[tuple[Predict, Fitted]], validation: Comparisons) -> tuple[Predict, Fitted]:
    """Return the candidate that predicts the validation part best."""
    scored = [(mean_loss(predict, validation), predict, about) for predict, about in candidates]
    _, predict, about = min(scored, key=lambda entry: entry[0])
    return predict, about


def _coin(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    return lambda data: np.full(len(data), 0.5), {}


def _chosen_scores(parts: Parts) -> tuple[Predict, tuple[float, Doubles]]:
    """Fit Bradley-Terry with the ridge that is best on the validation part."""

    def path() -> Iterable[tuple[Predict, tuple[float, Doubles]]]:
        scores: Doubles | None = None
        for penalty in PENALTIES:
            scores = fit_scores(parts.train, penalty, scores)
            yield bradley_terry(scores), (penalty, scores)

    return best(path(), parts.validation)


def _bradley_terry(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    predict, (penalty, _) = _chosen_scores(parts)
    return predict, {"penalty": penalty}


def _frequencies(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    """Count pairings, over Bradley-Terry; where there are several judges, then those of each judge, over that."""
    predict, (penalty, _) = _chosen_scores(parts)
    chosen: dict[str, Any] = {"penalty": penalty}
    for per_judge in (False, True)[: 1 + (len(parts.train.users) > 1)]:
        tables = [(frequency_table(parts.train, predict, s, per_judge), s) for s in STRENGTHS]
        predict, chosen["strength per judge" if per_judge else "strength"] = best(tables, parts.validation)
    return predict, chosen


def _personal(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    predict, (penalty, scores) = _chosen_scores(parts)
    if len(parts.train.users) == 1:
        return predict, {"penalty": penalty}
    fits = ((personal_bradley_terry(parts.train, penalty, own, scores), own) for own in OWN_PENALTIES)
    predict, own = best(fits, parts.validation)
    return predict, {"penalty": penalty, "own penalty": own}


def _blade_chest(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    _, (penalty, scores) = _chosen_scores(parts)
    fits = (
        (blade_chest(parts.train, rank, penalty, skew, scores), {"rank": rank, "skew penalty": skew})
        for rank in RANKS
        for skew in SKEW_PENALTIES
    )
    predict, chosen = best(fits, parts.validation)
    return predict, {"penalty": penalty, **chosen}


def _predicting(model: Any) -> Predict:
    def predict(data: Comparisons) -> Doubles:
        sides = data.items[data.winner_index], data.items[data.loser_index]
        return np.asarray(model.probability(data.users[data.user_index], *sides), np.float64)

    return predict


def _fitted(kind: Any, train: Comparisons, seed: int, **settings: Any) -> Predict:
    return _predicting(kind(random_state=seed, num_threads=1, **settings).fit(train, show_progress=False))


@cache
def warm_up() -> None:
    """Compile the kernels, so that no model's seconds have it in them; four sweeps go through all stages."""
    rng = np.random.default_rng(0)
    winner = rng.integers(5, size=300)
    columns = rng.integers(2, size=300), winner, (winner + rng.integers(1, 5, size=300)) % 5
    for users in (2, 1):
        data = Comparisons.from_indices(columns[0] % users, *columns[1:], users=range(users), items=range(5))
        for kind, settings in ((SAD, {}), (BPR, {}), (SAD, {"solver": "sgd"}), (GibbsSAD, GIBBS)):
            short = {**settings, "draws": 2, "warmup": 2} if kind is GibbsSAD else {**settings, "iterations": 4}
            _fitted(kind, data, 0, **short)(data)


GIBBS: dict[str, Any] = {"factors": 8, "draws": 300, "warmup": 300, "chains": 1}


def _default(kind: Any, **settings: Any) -> Callable[[Parts, int], tuple[Predict, Settings]]:
    return lambda parts, seed: (_fitted(kind, parts.train, seed, **settings), {})


def _tuned(parts: Parts, seed: int) -> tuple[Predict, Settings]:
    fits = ((_fitted(SAD, parts.train, seed, **settings), settings) for settings in TRIED)
    return best(fits, parts.validation)


MODELS: dict[str, Model] = {
    "coin": Model("coin", _coin),
    "bt": Model("BT", _bradley_terry, PENALTIES),
    "frequencies": Model("frequencies", _frequencies, (PENALTIES, STRENGTHS)),
    "personal-bt": Model("personal BT", _personal, (PENALTIES, OWN_PENALTIES)),
    "blade-chest": Model("blade-chest", _blade_chest, (PENALTIES, SKEW_PENALTIES, RANKS)),
    "bpr": Model("BPR()", _default(BPR)),
    "sad": Model("SAD()", _default(SAD)),
    "sad-tuned": Model("SAD tuned", _tuned, TRIED),
    "gibbs": Model("GibbsSAD", _default(GibbsSAD, **GIBBS), (*GIBBS.items(), ("bias", True))),
}
USUAL = tuple(MODELS)

# Only where they are asked for.
without = {**GIBBS, "bias": False}
MODELS["gibbs-no-bias"] = Model("GibbsSAD, no bias", _default(GibbsSAD, **without), tuple(without.items()))
for length in (2, 4, 16):
    with_length = {**GIBBS, "factors": length}
    title = f"GibbsSAD, {length} factors"
    MODELS[f"gibbs-{length}"] = Model(title, _default(GibbsSAD, **with_length), tuple(with_length.items()))


def titles(names: Sequence[str]) -> list[str]:
    """Return what the table calls models."""
    return [MODELS[name].title for name in names]
