"""The log likelihood of interactions, against a plain loop."""

import numpy as np
import pytest

from sadrec.evaluation.likelihood import log_likelihood
from sadrec.ranking.pairs import sigmoid


@pytest.fixture
def data(make_ratings):
    return make_ratings(users=60, items=80, popular=True)


def test_the_log_likelihood_is_the_mean_over_all_pairs_when_nothing_is_left_undrawn(data, factor_model):
    model = factor_model(data)
    total = weight = 0.0
    for row in range(60):
        met = data.matrix[row].indices
        rest = np.setdiff1d(np.arange(80), met)
        total += np.log(np.maximum(sigmoid(model.tensor(row)[np.ix_(met, rest)]), 1e-15)).mean() * len(met)
        weight += len(met)
    assert log_likelihood(model, data, items=80, negatives=80) == pytest.approx(total / weight, abs=1e-5)


def test_the_drawn_log_likelihood_is_close_and_the_same_for_any_threads(make_ratings, factor_model):
    data = make_ratings(users=400, items=80)
    model = factor_model(data, factors=2, scale=0.5)
    whole = log_likelihood(model, data, items=80, negatives=80)
    assert log_likelihood(model, data) == pytest.approx(whole, abs=0.06)
    assert log_likelihood(model, data, num_threads=1) == log_likelihood(model, data, num_threads=3)


def test_held_out_likelihood_never_takes_a_training_item_for_never_met(data):
    """Scores put training items far above all others: as negatives they would cost dearly."""
    train, test = data.split(test=0.2, seed=0)

    place = {user: row for row, user in enumerate(data.users.tolist())}

    class Memory:
        users, items = data.users, data.items

        def scores(self, users):
            rows = [place[user] for user in np.asarray(users).tolist()]
            return 30.0 * (train.matrix[rows].toarray() > 0)

        def probability(self, user, item, rival):
            at = {name: column for column, name in enumerate(data.items.tolist())}
            row = self.scores([user])[0]
            i = row[[at[name] for name in np.ravel(item).tolist()]]
            j = row[[at[name] for name in np.ravel(rival).tolist()]]
            return sigmoid(i[:, None] - j[None, :])

    assert log_likelihood(Memory(), test, train=train, items=80, negatives=80) == pytest.approx(np.log(0.5))
    assert log_likelihood(Memory(), test, items=80, negatives=80) < -1


def test_a_model_without_probability_has_no_likelihood(data, scores_model):
    with pytest.raises(ValueError, match="no likelihood"):
        log_likelihood(scores_model(data, np.zeros(data.matrix.shape)), data)
