"""A visitor is a model of one person: every verb can be asked about them, and how sure that is."""

import numpy as np
import pytest

from sadrec import BPR, SAD, Comparisons
from sadrec.data import simulate
from sadrec.ranking import nearest_bpr
from sadrec.ranking.belief import Gaussian
from sadrec.ranking.fold_in import fold_in_comparisons


@pytest.fixture(scope="module")
def people():
    return simulate("sim2", n=60, m=25, k=3, seed=2)


@pytest.fixture(scope="module", params=["variational", "sgd"])
def model(request, people):
    return SAD(factors=3, iterations=30, solver=request.param).fit(people.comparisons, show_progress=False)


def said(people, user, number):
    rows = np.flatnonzero(people.comparisons.user_index == user)[:number]
    winner, loser = people.comparisons.winner_index[rows], people.comparisons.loser_index[rows]
    return Comparisons.from_indices(
        np.zeros(len(rows), int), winner, loser, users=["x"], items=people.comparisons.items
    )


def test_a_visitor_has_the_vector_that_the_spread_of_the_users_gives(model, people):
    answers = said(people, 3, 20)
    visitor = model.visitor(comparisons=answers, name="ann")
    sides = answers.winner_index, answers.loser_index  # the items are those of the model, in the same order
    spread = model.user_factors.std(axis=0, dtype=np.float64)
    if isinstance(model.state.belief, Gaussian):
        spread = model.state.belief.population[1]
    folded = fold_in_comparisons(model.state.parameters, *sides, spread=spread)
    np.testing.assert_allclose(visitor.user_factors[0], folded.vector, rtol=1e-5)
    np.testing.assert_allclose(visitor.state.belief.user_covariance_of(0), folded.covariance, rtol=1e-5)
    assert visitor.users.tolist() == ["ann"] and visitor.item_factors is model.item_factors
    ids, scores = model.recommend_for(comparisons=answers, N=5)
    for one, other in zip(visitor.recommend("ann", N=5), (ids, scores), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert visitor.cycles("ann") is not None and visitor.explain("ann", 1, 2).margin == pytest.approx(
        visitor.preference("ann", 1, 2)
    )


def test_answers_make_a_visitor_surer_and_the_next_question_tells_most(model, people):
    sure = [model.visitor(comparisons=said(people, 3, number)).deviation("visitor", 4, 9) for number in (1, 20, 200)]
    assert sure[0] > sure[1] > sure[2]
    visitor = model.visitor(comparisons=said(people, 3, 5))
    questions = visitor.ask_next("visitor", N=400)
    assert len(questions) == 25 * 24 // 2 and questions["bits"].is_sorted(descending=True)
    first = questions.row(0, named=True)
    assert visitor.probability("visitor", first["item"], first["rival"]) == pytest.approx(
        first["probability"], abs=0.03
    )


def test_asking_what_tells_most_teaches_more_than_asking_anything(people):
    model = SAD(factors=3, iterations=30).fit(people.comparisons, show_progress=False)
    rng = np.random.default_rng(0)
    errors = {"best": [], "any": []}
    every = np.array([(i, j) for i in range(25) for j in range(i)])
    for user in range(0, 12):
        truth = people.preference(user, every[:, 0], every[:, 1])
        for way in errors:
            pairs = []
            for _ in range(12):
                answers = None
                if pairs:
                    winner, loser = np.array(pairs).T
                    zeros = np.zeros(len(pairs), int)
                    answers = Comparisons.from_indices(zeros, winner, loser, users=[0], items=model.items)
                if way == "best":
                    one, other, *_ = model.visitor(comparisons=answers).ask_next("visitor").row(0)
                else:
                    one, other = rng.choice(25, 2, replace=False)
                wins = rng.random() < 1 / (1 + np.exp(-people.preference(user, one, other)))
                pairs.append((one, other) if wins else (other, one))
            vector = model.visitor(comparisons=answers)
            guess = vector.preference("visitor", every[:, 0], every[:, 1])
            errors[way].append(np.mean(np.sign(guess) != np.sign(truth)))
    assert np.mean(errors["best"]) < np.mean(errors["any"])


def test_nobody_is_the_average_user(model):
    nobody = model.visitor()
    ids, _ = model.recommend(None, N=5)
    np.testing.assert_array_equal(nobody.recommend("visitor", N=5)[0], ids)
    assert nobody.deviation("visitor", 1, 2) > 0


def test_likes_are_left_out_and_explain(people):
    liked = np.random.default_rng(0).random((40, 25)) < 0.3
    model = SAD(factors=3, iterations=20).fit(liked, show_progress=False)
    visitor = model.visitor([1, 2, 3])
    assert not {1, 2, 3} & set(visitor.recommend("visitor", N=25)[0].tolist())
    assert set(visitor.explain("visitor", 5, 6).liked.tolist()) == {1, 2, 3}
    assert 0 < visitor.deviation("visitor", 5, 6) < np.inf


def test_a_visitor_can_be_saved_without_how_sure_it_is(tmp_path, people):
    liked = np.random.default_rng(0).random((40, 25)) < 0.3
    visitor = SAD(factors=3, iterations=2).fit(liked, show_progress=False).visitor([1, 2])
    visitor.save(tmp_path / "v.sad")
    assert SAD.load(tmp_path / "v.sad").preference("visitor", 3, 4) == visitor.preference("visitor", 3, 4)


def test_a_fit_that_does_not_know_how_sure_it_is_says_so(people):
    model = SAD(factors=2, iterations=2, solver="sgd").fit(people.comparisons, show_progress=False)
    with pytest.raises(ValueError, match=r"model\.visitor"):
        model.ask_next(0)


@pytest.mark.parametrize("bias", [True, False])
def test_the_nearest_bpr_keeps_what_scores_explain(people, bias):
    model = SAD(factors=3, iterations=10, solver="sgd", bias=bias).fit(people.comparisons, show_progress=False)
    nearest = nearest_bpr(model.state.parameters)
    assert nearest.rival_factors is None
    twin = BPR.from_factors(nearest.user_factors, nearest.item_factors, None, nearest.item_bias)
    assert twin.intransitivity(5) == 0
    np.testing.assert_allclose(twin.scores([5]), model.scores([5]), atol=1e-4)
    x = model.margins(5, None, None)
    rest = x - twin.margins(5, None, None)
    assert (rest**2).sum() / (x**2).sum() == pytest.approx(model.intransitivity(5), abs=1e-3)
