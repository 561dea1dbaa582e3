"""The sampler with features: new items and users, and what is said of them."""

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.special import ndtr
from scipy.stats import truncnorm

from sadrec import Comparisons, Interactions
from sadrec.posterior import GibbsSAD
from sadrec.posterior import regression as regressions
from sadrec.posterior.chain import Chain
from sadrec.posterior.regression import Basis, Regression
from sadrec.posterior.triples import as_triples
from sadrec.training.given import Pairs

SETTINGS = {"factors": 2, "draws": 250, "warmup": 150, "chains": 2, "num_threads": 1}


def ladder(items=24, new=3, answers=900, seed=0):
    """Judges prefer what is larger, as a rule; the last items were never compared, and only their size is known."""
    rng = np.random.default_rng(seed)
    size = np.append(rng.permutation(np.linspace(-1, 1, items)), np.linspace(-1, 1, new))
    strength = 1.5 * size + 0.5 * rng.standard_normal(items + new)
    one = rng.integers(items, size=answers)
    other = (one + rng.integers(1, items, size=answers)) % items
    won = rng.random(answers) < ndtr(strength[one] - strength[other])
    winner, loser = np.where(won, one, other), np.where(won, other, one)
    said = Comparisons.from_indices(rng.integers(4, size=answers), winner, loser, users=range(4), items=range(items))
    return said, pl.DataFrame({"item": np.arange(items + new), "size": size}), size


@pytest.fixture(scope="module")
def said():
    return ladder()[0]


@pytest.fixture(scope="module")
def posterior(said):
    return GibbsSAD(**SETTINGS).fit(said, show_progress=False, item_features=ladder()[1])


def test_items_that_only_the_features_know_have_draws(posterior):
    assert posterior.items.tolist() == list(range(27))
    assert posterior.probability_beats(0, 26, 24) > 0.9
    assert 0.6 < posterior.probability(0, 26, 24) < 1
    assert posterior.ranking(0, items=[24, 25, 26])["item"].to_list() == [26, 25, 24]
    assert isinstance(posterior.cycles(0, items=[24, 25, 26]), list)
    assert posterior.mean_model().preference(0, 26, 24) > 0


def test_less_is_sure_of_a_new_item_than_of_one_that_was_compared(posterior):
    size = ladder()[2]
    like_25 = int(np.abs(size[:24] - size[25]).argmin())
    high, low = int(size[:24].argmax()), int(size[:24].argmin())
    for rival in (high, low):
        new, known = (np.subtract(*posterior.interval(0, item, rival)[::-1]) for item in (25, like_25))
        assert new > 1.1 * known


def test_without_features_nothing_is_known_of_an_item_nobody_compared(posterior, said):
    wider = Comparisons.from_indices(
        said.user_index, said.winner_index, said.loser_index, users=said.users, items=range(27)
    )
    plain = GibbsSAD(**SETTINGS).fit(wider, show_progress=False)
    assert abs(plain.mean(0, 26, 24)) < 0.3 < posterior.mean(0, 26, 24)


def test_the_same_draws_on_any_number_of_threads_and_after_an_interruption(said, tmp_path, monkeypatch):
    given = {"show_progress": False, "item_features": ladder()[1], "user_features": {u: [str(u % 2)] for u in range(5)}}
    short = {**SETTINGS, "draws": 12, "warmup": 6}
    one, two = (GibbsSAD(**{**short, "num_threads": threads}).fit(said, **given) for threads in (1, 2))
    GibbsSAD(**{**short, "draws": 5}).fit(said, checkpoint=tmp_path, **given)
    again = GibbsSAD(**short).fit(said, checkpoint=tmp_path, **given)
    for other in (two, again):
        for name in ("user", "item", "rival", "scales"):
            np.testing.assert_array_equal(getattr(one.drawn, name), getattr(other.drawn, name))
    assert one.users.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"checkpoint|run"):
        GibbsSAD(**short).fit(said, checkpoint=tmp_path, show_progress=False)


def test_saved_is_loaded(posterior, tmp_path):
    posterior.save(tmp_path / "p.posterior")
    again = GibbsSAD.load(tmp_path / "p.posterior")
    assert again.items.tolist() == posterior.items.tolist()
    assert again.interval(0, 26, 24) == posterior.interval(0, 26, 24)


def test_interactions_meet_no_new_item_as_a_negative():
    rng = np.random.default_rng(0)
    touched = (rng.random((30, 20)) < 0.5) & (np.arange(30)[:, None] % 2 == np.arange(20)[None, :] % 2)
    data = Interactions.from_csr(touched.astype(np.float32))
    kinds = {item: ["even" if item % 2 == 0 else "odd"] for item in range(22)}
    clubs = {user: ["even" if user % 2 == 0 else "odd"] for user in range(32)}
    posterior = GibbsSAD(**{**SETTINGS, "chains": 1}).fit(
        data, show_progress=False, item_features=kinds, user_features=clubs
    )
    assert posterior.observed.loser.max() < 20
    assert posterior.probability_beats(0, 20, 21) > 0.8
    assert posterior.probability_beats(31, 21, 20) > 0.8  # nothing is known of either but features


@pytest.mark.parametrize("width", [2, 9])
def test_the_principal_directions_have_the_products_of_the_features(width):
    rng = np.random.default_rng(0)
    rows, cold = rng.normal(size=(9, width)) * (rng.random((9, width)) < 0.7), np.arange(9) % 3 == 0
    rows[:, -1] = np.where(cold, rows[:, -1], 0.0)  # a direction that no row with data has
    basis = Basis.of(csr_matrix(rows), cold, "item")
    centred = rows - rows[~cold].mean(axis=0)
    size = np.sqrt((centred[~cold] ** 2).sum() / 6)
    whole = np.vstack((centred[~cold], centred[cold])) / size
    found = np.vstack((basis.known, basis.new))
    products = found @ found.T
    products[6:, 6:] += basis.beyond @ basis.beyond.T
    np.testing.assert_allclose(products, whole @ whole.T, atol=1e-9)
    np.testing.assert_allclose(basis.known.T @ basis.known, np.diag(basis.squares), atol=1e-9)


def test_new_rows_are_drawn_from_their_prior(settings):
    rows, cold = np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 1.0]]), np.array([False, False, True])
    basis = Basis.of(csr_matrix(rows), cold, "item")
    chain = Chain(as_triples(Pairs(*np.array([[0], [0], [1]])), 1, 2), settings(bias=True), 0, Regression(item=basis))
    chain.state.item_weights[:], chain.state.rival_weights[:], chain.state.spread[:] = 0.7, -1.5, (1.0, 4.0, 16.0, 9.0)
    chain.state.bias_weights[:], chain.state.prior[4] = 2.0, 0.25
    draws = np.array([np.concatenate([part[2] for part in chain.parameters()[1:]]) for chain.sweep in range(8000)])
    middle, beyond = basis.new[0, 0], (basis.beyond**2).sum()
    eta, bias, tau = draws[:, :2].ravel(), draws[:, 2], draws[:, 3:].ravel()
    assert bias.mean() == pytest.approx(2 * middle, abs=0.1)
    assert bias.var() == pytest.approx(4 + beyond / 9, rel=0.07)
    assert eta.mean() == pytest.approx(0.7 * middle, abs=0.05)
    assert eta.var() == pytest.approx(1 + beyond / 4, rel=0.05)
    assert tau.min() >= 0
    assert tau.mean() == pytest.approx(_cut(1 - 1.5 * middle, np.sqrt(beyond) / 4), abs=0.03)


def _cut(mean, spread):
    """Return the mean of a normal that is cut at 0, over means that are normal themselves."""
    means = np.random.default_rng(0).normal(mean, spread, 20_000)
    return truncnorm.mean(-means, np.inf, means, 1.0).mean()


def test_too_many_directions_are_refused(monkeypatch):
    monkeypatch.setattr(regressions, "MOST", 3)
    with pytest.raises(ValueError, match="raise minimum"):
        Basis.of(csr_matrix(np.eye(9)), np.zeros(9, bool), "item")
