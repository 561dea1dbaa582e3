"""Every adapter finds the answer that is known: people like the rest of their own group."""

import numpy as np
import pytest

from sadrec import Interactions
from sadrec.evaluation import HasScores
from studies.baselines import make

# Few factors, because two groups are one difference; enough steps for 1,536 cells.
LIGHT = {
    "svd": {"factors": 1, "iterations": 100, "learning_rate": 0.05},
    "mf": {"factors": 1, "iterations": 100, "learning_rate": 0.05},
    "pmf": {"factors": 1, "iterations": 60, "learning_rate": 0.01},
    "als": {"factors": 2},
    "implicit-bpr": {"factors": 2, "iterations": 300, "learning_rate": 0.05, "num_threads": 1},
}
HEAVY = {
    "fm": {"factors": 4, "iterations": 50},
    "ncf": {"factors": 4, "iterations": 8, "learning_rate": 0.005, "batch_size": 128},
    "vae": {"factors": 4, "iterations": 150, "batch_size": 16},
}


def check(model, two_groups):
    data = two_groups.data
    assert model.fit(data) is model
    assert isinstance(model, HasScores)
    assert two_groups.right(model) > 0.99
    assert model.scores(data.users).shape == data.matrix.shape
    np.testing.assert_array_equal(model.users, data.users)
    np.testing.assert_array_equal(model.items, data.items)


def test_ease_likes_the_rest_of_the_group(two_groups):
    check(make("ease", regularization=10.0), two_groups)


def test_popularity_knows_no_groups(two_groups):
    assert 0.3 < two_groups.right(make("popularity").fit(two_groups.data)) < 0.7


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_baseline_likes_the_rest_of_the_group(name, two_groups, light):
    model = make(name, **LIGHT[name])
    check(model, two_groups)
    assert f"{two_groups.data.matrix.nnz:,} interactions" in model.trained_on
    assert model.facts["versions"][model.spec.library]


@pytest.mark.parametrize("name", ["svd", "pmf"])
def test_a_baseline_learns_from_sampled_cells_too(name, two_groups, light):
    model = make(name, cells="sampled", zeros=2, **LIGHT[name])
    check(model, two_groups)
    assert "(2 drawn for each)" in model.trained_on


@pytest.mark.parametrize("name", ["svd", "mf", "als"])
def test_the_same_seed_gives_the_same_scores(name, two_groups, light):
    settings = {**LIGHT[name], "iterations": 3}
    first, again = (make(name, **settings).fit(two_groups.data) for _ in range(2))
    other = make(name, **settings, random_state=1).fit(two_groups.data)
    users = two_groups.data.users
    np.testing.assert_array_equal(first.scores(users), again.scores(users))
    assert not np.array_equal(first.scores(users), other.scores(users))


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_baseline_likes_the_rest_of_the_group(name, two_groups, heavy):
    check(make(name, **HEAVY[name]), two_groups)


def test_fm_is_reproducible_and_scores_what_it_never_saw_lowest(two_groups, heavy):
    import scipy.sparse

    from sadrec.data import Interactions

    # an item nobody touched, a user who touched nothing, and one who touched everything
    wider = scipy.sparse.lil_matrix((two_groups.data.matrix.shape[0] + 2, two_groups.data.matrix.shape[1] + 1))
    wider[:-2, :-1] = two_groups.data.matrix
    wider[-1, :-1] = 1
    data = Interactions.from_csr(wider.tocsr())
    first, again = (make("fm", **HEAVY["fm"]).fit(data).scores(data.users) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[:, -1], first.min(axis=1))
    np.testing.assert_array_equal(first[-1], first[-2])


@pytest.mark.parametrize("own_factors", [True, False])
def test_lightfm_knows_the_group_of_items_without_history_by_their_features(own_factors, two_groups, hybrid):
    data = two_groups.data
    new = data.items[-8:]
    kept = np.arange(len(data.items) - 8)
    train = Interactions.from_csr(data.matrix[:, kept], data.users, data.items[kept])
    groups = np.eye(2)[np.arange(len(data.items)) % 2]
    shuffled = np.random.default_rng(0).permutation(len(data.items))
    model = make("lightfm", factors=8, iterations=60, own_factors=own_factors)
    model.fit(train, item_features=(data.items[shuffled], groups[shuffled]))
    assert sorted(model.items) == sorted(data.items)
    wanted = np.arange(len(data.users))[:, None] % 2 == (np.arange(len(data.items)) % 2)[-8:][None, :]
    scores = model.scores(data.users)[:, [list(model.items).index(item) for item in new]]
    assert scores[wanted].min() > scores[~wanted].max()
    assert "2 of items" in model.trained_on


def test_features_are_refused_by_a_baseline_that_knows_none(two_groups):
    data = two_groups.data
    with pytest.raises(ValueError, match=r"als knows no features: leave them out, or take lightfm"):
        make("als").fit(data, item_features=(data.items, np.ones((len(data.items), 1))))


def test_features_need_a_row_for_every_item_of_the_data(two_groups):
    data = two_groups.data
    with pytest.raises(ValueError, match="no row for 31: give a row for each item of the data"):
        make("lightfm").fit(data, item_features=(data.items[:-1], np.ones((len(data.items) - 1, 1))))
    with pytest.raises(ValueError, match="3 rows for 32 ids"):
        make("lightfm").fit(data, item_features=(data.items, np.ones((3, 1))))
