"""What counts as a model, and the missing half of one."""

import numpy as np
import pytest

from sadrec.evaluation import EvaluatedModel, HasMargins, HasProbability, HasScores, as_evaluated


def test_a_complete_model_is_left_alone(make_ratings, factor_model):
    model = factor_model(make_ratings())
    assert isinstance(model, EvaluatedModel)
    assert as_evaluated(model) is model


def test_a_scores_only_model_gets_margins_as_differences(make_ratings, scores_model):
    data = make_ratings(users=5, items=7)
    model = scores_model(data, np.arange(35.0).reshape(5, 7) ** 2)
    assert isinstance(model, HasScores)
    assert not isinstance(model, HasMargins)
    whole = as_evaluated(model)
    x = whole.margins(data.users[2], data.items[[4, 0]], data.items[[1, 0, 6]])
    row = model.table[2]
    assert x.tolist() == [[row[i] - row[j] for j in (1, 0, 6)] for i in (4, 0)]


def test_a_margins_only_model_gets_scores_as_mean_margins(make_ratings, factor_model, margins_model):
    data = make_ratings(users=5, items=7)
    model = factor_model(data)
    whole = as_evaluated(margins_model(model))
    assert isinstance(whole, EvaluatedModel)
    np.testing.assert_allclose(whole.scores(data.users[[3, 1]]), model.scores(data.users[[3, 1]]), atol=1e-6)


def test_probability_is_optional(make_ratings, factor_model, scores_model):
    data = make_ratings()
    assert isinstance(factor_model(data), HasProbability)
    assert not isinstance(scores_model(data, np.zeros(data.matrix.shape)), HasProbability)


def test_anything_else_is_refused_with_what_it_lacks():
    with pytest.raises(TypeError, match="cannot evaluate dict"):
        as_evaluated({})
