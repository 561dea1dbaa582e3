"""Is T worth it: the verdict, and what it rests on."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.data import Interactions, simulate
from sadrec.evaluation.rivalry import rivalry, sparsity_of
from sadrec.ranking import Parameters


class Known:
    """Scores that know the data to a degree; margins as differences."""

    def __init__(self, truth, skill=1.0, noise_seed=0, tau=1.0):
        self.truth, self.skill, self.noise_seed, self.tau = truth, skill, noise_seed, tau

    def get_params(self):
        return {"truth": self.truth, "skill": self.skill, "noise_seed": self.noise_seed, "tau": self.tau}

    def fit(self, train):
        self.users, self.items = train.users, train.items
        noise = np.random.default_rng(self.noise_seed).normal(size=self.truth.shape)
        self.table = self.skill * self.truth + noise
        return self

    def scores(self, users):
        return self.table[np.searchsorted(self.users, users)]


@pytest.fixture
def truth():
    return (np.random.default_rng(0).random((80, 150)) < 0.2).astype(float)


@pytest.fixture
def data(truth):
    rng = np.random.default_rng(1)
    return Interactions.from_csr(csr_matrix(truth * rng.integers(1, 6, truth.shape)))


def test_a_rival_that_is_better_is_recommended(data, truth):
    result = rivalry(data, splits=4, models=(Known(truth, 3.0), Known(truth, 0.5)), progress=False)
    assert result.advice == "learn"
    assert str(result).startswith("Learn T (use SAD): over 4 splits it is better than T = 1 on")
    assert "M1 (+" in str(result)
    assert "\n" not in str(result)


def test_a_rival_that_is_worse_is_not(data, truth):
    result = rivalry(data, splits=4, models=(Known(truth, 0.5), Known(truth, 3.0)), progress=False)
    assert result.advice == "keep at 1"
    assert "learning T is worse on" in str(result)


def test_no_difference_means_the_simpler_model(data, truth):
    result = rivalry(data, splits=4, models=(Known(truth, 1.0), Known(truth, 1.0)), progress=False)
    assert result.advice == "keep at 1"
    assert "no measure differs beyond chance" in str(result)
    assert result.items["difference"].abs().max() == 0


def test_better_on_one_and_worse_on_another_is_said(data, truth):
    """One knows what people meet, the other how they rate it."""
    ratings = data.matrix.toarray()
    ordered = np.where(truth > 0, -100.0, 0.0) + 10 * ratings
    result = rivalry(data, splits=4, models=(Known(truth, 8.0), Known(ordered, 1.0)), progress=False)
    assert result.advice == "it depends"
    assert "but worse on" in str(result)


def test_tests_have_both_means_and_the_table_shows_them(data, truth):
    result = rivalry(data, splits=3, models=(Known(truth, 2.0), Known(truth, 1.0)), progress=False)
    row = result.tests.filter(measure="m1").row(0, named=True)
    assert row["difference"] == pytest.approx(row["sad"] - row["bpr"])
    assert row["low"] <= row["difference"] <= row["high"]
    assert "| M1 (%) |" in result.table()
    assert set(result.comparison.models) == {"SAD", "T = 1"}


def test_items_and_users_that_gain_are_averages_of_their_cases(data, truth):
    splits = 3
    result = rivalry(data, splits=splits, models=(Known(truth, 2.0), Known(truth, 1.0)), progress=False)
    by_item, by_user = {}, {}
    for split in range(splits):
        users, ours = result.comparison.of_split("SAD", split, "sampled_auc")
        _, theirs = result.comparison.of_split("T = 1", split, "sampled_auc")
        held = data.leave_one_out(seed=split)[1].matrix.tocoo()
        item_of = dict(zip(held.row.tolist(), held.col.tolist(), strict=True))
        for user, difference in zip(users.tolist(), (ours - theirs).tolist(), strict=True):
            by_item.setdefault(item_of[user], []).append(difference)
            by_user.setdefault(user, []).append(difference)
    assert dict(result.items.select("item", "difference").rows()) == pytest.approx(
        {item: np.mean(values) for item, values in by_item.items()}, abs=1e-6
    )
    assert dict(result.users.select("user", "splits").rows()) == {user: len(v) for user, v in by_user.items()}
    assert result.items["z"].is_sorted(descending=True)


def test_a_model_that_never_works_is_an_error_with_its_reason(data, truth):
    class Broken(Known):
        def fit(self, train):
            raise RuntimeError("out of luck")

    with pytest.raises(ValueError, match="out of luck"):
        rivalry(data, splits=2, models=(Known(truth), Broken(truth)), progress=False)


def test_it_shows_as_its_sentence(data, truth):
    result = rivalry(data, splits=2, models=(Known(truth), Known(truth)), progress=False)
    assert repr(result) == str(result) and str(result).startswith("Keep T at 1")


def test_data_of_any_form_is_taken(data, truth):
    models = (Known(truth, 2.0), Known(truth, 1.0))
    ours, matrix = (rivalry(form, splits=2, models=models, progress=False) for form in (data, data.matrix))
    assert ours.tests.equals(matrix.tests)


def test_what_is_wrong_is_named_before_anything_is_fitted(data):
    with pytest.raises(ValueError, match="unknown setting 'factor': the models have adaptive, bias"):
        rivalry(data, factor=8)
    for splits in (0, 1, 2.5, True):
        with pytest.raises(ValueError, match=f"splits must be a whole number of at least 2, not {splits}"):
            rivalry(data, splits)
    with pytest.raises(ValueError, match=r"models must be two, .*, not 1"):
        rivalry(data, models=(Known,))
    with pytest.raises(TypeError, match="evaluate_comparisons"):
        rivalry(simulate("sim2", n=4, m=5, k=2).comparisons)
    with pytest.raises(TypeError, match="cannot take interactions from list"):
        rivalry([1, 2])


def test_sparsity_is_the_share_of_rivals_near_one():
    class Model:
        parameters = Parameters(np.ones((1, 2)), np.ones((2, 2)), np.array([[1.0, 1.049], [0.9, 1.2]]))

    assert sparsity_of(Model()) == 0.5
    assert sparsity_of(object()) == 1.0


def test_the_real_models_with_settings_for_both(make_ratings):
    data = make_ratings(users=60, items=80)
    result = rivalry(data, splits=2, factors=4, iterations=5, rival_regularization=0.001, progress=False)
    about = {run.model: run.about for run in result.comparison.runs}
    assert about["SAD"]["settings"]["rival_regularization"] == 0.001
    assert "rival_regularization" not in about["T = 1"]["settings"]
    assert about["SAD"]["settings"]["factors"] == about["T = 1"]["settings"]["factors"] == 4
    assert 0 <= result.sparsity <= 1
    assert "of T stayed within 0.05 of 1" in str(result)
