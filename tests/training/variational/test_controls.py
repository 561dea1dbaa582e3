"""Features of comparisons that should not count: coefficients, their intervals, and scores without them."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from sadrec import SAD, Comparisons
from sadrec.posterior import GibbsSAD

TRUE = np.array([0.4, -0.05])


def games(count: int = 4000, seed: int = 0, judges: int = 1) -> pl.DataFrame:
    """Return games of eight teams; those at home win more often, and weak teams play at home more often."""
    rng = np.random.default_rng(seed)
    scores = np.linspace(-1, 1, 8)
    first, step, judge = rng.integers((0, 1, 0), (8, 8, judges), size=(count, 3)).T
    second = (first + step) % 8
    home = np.where(rng.random(count) < expit(2 * (scores[second] - scores[first])), 1.0, -1.0)
    length = rng.normal(size=count) * 10
    won = rng.random(count) < expit(scores[first] - scores[second] + np.stack((home, length), axis=1) @ TRUE)
    winner = np.where(won, first, second)
    columns = {"judge": judge, "left": first, "right": second, "winner": winner, "home": home, "length": length}
    return pl.DataFrame(columns)


def fit(frame: pl.DataFrame, **options) -> SAD:
    return SAD(random_state=0, num_threads=1).fit(Comparisons.from_frame(frame, **options), show_progress=False)


def test_coefficients_are_found_and_scores_are_those_of_equal_features():
    plain, controlled = fit(games()), fit(games(), features=["home", "length"])
    controls = controlled.state.belief.controls
    assert controls is not None and controls.names == ("home", "length")
    assert controls.mean == pytest.approx(TRUE, abs=0.1)
    true = np.linspace(-1, 1, 8)
    error = [
        np.abs(model.margins(0, None, None) - np.subtract.outer(true, true)).mean() for model in (plain, controlled)
    ]
    assert error[1] < 0.5 * error[0]


def test_intervals_are_those_of_a_logistic_regression():
    frame = games(1500)
    controls = fit(frame, features=["home", "length"]).state.belief.controls
    assert controls is not None
    side = np.where(frame["winner"] == frame["left"], 1.0, -1.0)
    items = np.eye(8)[frame["left"]] - np.eye(8)[frame["right"]]
    design = side[:, None] * np.hstack((items, frame.select("home", "length").to_numpy()))
    best = minimize(lambda b: np.logaddexp(0, -design @ b).sum() + 0.5 * b @ b * 1e-2, np.zeros(10)).x
    p = expit(design @ best)
    covariance = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design + 1e-2 * np.eye(10))
    shown, deviation = controls.to_frame(0.9), np.sqrt(np.diagonal(covariance))[8:]
    assert (np.abs(shown["coefficient"].to_numpy() - best[8:]) < 0.5 * deviation).all()
    assert shown["deviation"].to_numpy() == pytest.approx(deviation, rel=0.15)
    assert ((shown["upper"] - shown["lower"]) / shown["deviation"]).to_numpy() == pytest.approx(2 * 1.645, abs=0.01)


def test_several_judges_share_coefficients():
    controls = fit(games(judges=5), user="judge", features=["home", "length"]).state.belief.controls
    assert controls is not None and controls.mean == pytest.approx(TRUE, abs=0.1)


def test_turning_every_row_around_changes_nothing():
    frame = games(800)
    turned = frame.rename({"left": "right", "right": "left"}).with_columns(-pl.col("home"), -pl.col("length"))
    one, other = (fit(each, features=["home", "length"]) for each in (frame, turned))
    assert np.array_equal(one.margins(0, None, None), other.margins(0, None, None))


def test_a_saved_model_knows_its_coefficients(tmp_path):
    model = fit(games(500), features=["home"])
    model.save(tmp_path / "m.sad")
    loaded = SAD.load(tmp_path / "m.sad").state.belief.controls
    assert loaded is not None and loaded.to_frame().equals(model.state.belief.controls.to_frame())


def test_what_cannot_take_features_says_so():
    data = Comparisons.from_frame(games(100), features=["home"])
    with pytest.raises(ValueError, match="solver='sgd' takes no features of comparisons"):
        SAD(solver="sgd", iterations=2).fit(data)
    with pytest.raises(ValueError, match="the sampler takes no features"):
        GibbsSAD(draws=2, warmup=2).fit(data)
    with pytest.raises(ValueError, match="no column 'map' for the feature"):
        Comparisons.from_frame(games(100), features=["map"])
