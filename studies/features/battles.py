"""The models of comparisons of items that training has not seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from sadrec import SAD, Comparisons
from sadrec.data import Ids
from studies.comparisons.baselines import Doubles, Predict, bradley_terry, fit_scores, log_loss, minimised
from studies.features.data import encoded

Settings = Mapping[str, Any]
Fit = Callable[[Comparisons, pl.DataFrame, Settings, int], Predict]
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class BattleModel:
    """A model: ``fit(train, features, settings, seed)`` returns the probabilities that winners win."""

    title: str
    fit: Fit
    tried: Sequence[Settings] = ({},)


def features_of(frame: pl.DataFrame, train: Comparisons, bends: int = 0) -> Doubles:
    """Return the features of a frame as numbers, in the order of the items of the data."""
    ids = Ids(frame[:, 0].to_numpy())
    met = train.items[np.unique(np.concatenate([train.winner_index, train.loser_index]))]
    return np.asarray(encoded(frame, Ids(met).known(ids.array), bends)[ids.positions(train.items)])


def _coin(train: Comparisons, features: pl.DataFrame, settings: Settings, seed: int) -> Predict:
    return lambda data: np.full(len(data), 0.5)


def _bradley_terry(train: Comparisons, features: pl.DataFrame, settings: Settings, seed: int) -> Predict:
    """Fit scores; items that were not seen have that of an average one, 0."""
    return bradley_terry(fit_scores(train, settings["penalty"]))


def logistic_loss(w: Doubles, differences: Doubles, penalty: float) -> tuple[float, Doubles]:
    """Return loss and gradient of ``x_ij = w . (f_i - f_j)``, of rows that hold ``f_winner - f_loser``."""
    value, slope = log_loss(differences @ w, np.ones(len(differences)))
    return value + penalty * float(w @ w), slope @ differences + 2 * penalty * w


def _logistic(train: Comparisons, features: pl.DataFrame, settings: Settings, seed: int) -> Predict:
    """Fit a logistic regression on differences of features."""
    f = features_of(features, train, settings.get("bends", 0))
    differences, penalty = f[train.winner_index] - f[train.loser_index], float(settings["penalty"])
    w = minimised(lambda w: logistic_loss(w, differences, penalty), np.zeros(f.shape[1]))
    return bradley_terry(f @ w)


def _products(train: Comparisons, features: pl.DataFrame, settings: Settings, seed: int) -> Predict:
    """Fit ``x_ij = w . (f_i - f_j) + f_i' A f_j`` with an anti-symmetric A: types against types."""
    f = features_of(features, train)
    upper = np.triu_indices(f.shape[1], 1)
    penalty = float(settings["penalty"])

    def columns(data: Comparisons) -> Doubles:
        i, j = f[data.winner_index], f[data.loser_index]
        return np.hstack([i - j, i[:, upper[0]] * j[:, upper[1]] - i[:, upper[1]] * j[:, upper[0]]])

    known = columns(train)
    w = minimised(lambda w: logistic_loss(w, known, penalty), np.zeros(known.shape[1]), 100)
    return lambda data: np.asarray(expit(columns(data) @ w))


def _sad(with_features: bool) -> Fit:
    def fit(train: Comparisons, features: pl.DataFrame, settings: Settings, seed: int) -> Predict:
        model = SAD(num_threads=1, random_state=seed, **settings)
        model.fit(train, show_progress=False, item_features=features if with_features else None)

        def predict(data: Comparisons) -> Doubles:
            sides = data.items[data.winner_index], data.items[data.loser_index]
            return np.asarray(model.probability(data.users[data.user_index], *sides), np.float64)

        return predict

    return fit


_BY_PENALTY = tuple({"penalty": penalty} for penalty in PENALTIES)

BATTLE_MODELS: Mapping[str, BattleModel] = {
    "coin": BattleModel("coin", _coin),
    "bt": BattleModel("Bradley-Terry (unseen: an average one)", _bradley_terry, _BY_PENALTY),
    "logistic": BattleModel("features alone: logistic", _logistic, _BY_PENALTY),
    "bent": BattleModel(
        "features alone: logistic, numbers bend at deciles",
        _logistic,
        tuple({**one, "bends": 9} for one in _BY_PENALTY),
    ),
    "products": BattleModel("features alone: logistic with products", _products, _BY_PENALTY),
    "sad": BattleModel("SAD() without features", _sad(False)),
    "sad-features": BattleModel("SAD() with features", _sad(True)),
}
"""The models of comparisons by name."""
