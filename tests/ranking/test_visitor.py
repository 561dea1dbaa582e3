"""A visitor who answers questions."""

import numpy as np
import pytest

from sadrec.data import simulate
from sadrec.ranking import Parameters
from sadrec.ranking.cycles import cycle_through
from sadrec.ranking.nemesis import head_to_head
from sadrec.ranking.pairs import preference
from sadrec.ranking.slates import SLATE_METHODS, dethroners, rank_slate
from sadrec.ranking.tournament import Tournament, tournament
from sadrec.ranking.vectors import mean_margins
from sadrec.ranking.visitor import Visitor, visitor


@pytest.fixture(scope="module")
def truth():
    return simulate("sim2", n=300, m=60, k=4, comparisons_per_user=2, seed=3)


@pytest.fixture(scope="module")
def parameters(truth):
    sides = (truth.user_factors, truth.item_factors, truth.rival_factors)
    return Parameters(*(side.astype(np.float32) for side in sides))


def _answers(known, truth, xi, number, rng=None):
    """Ask ``number`` questions of somebody whose vector is known; without chance, they prefer what they prefer."""
    half = (truth.item_factors * xi) @ truth.rival_factors.T
    x = half - half.T
    winners, losers, reasons = [], [], []
    for _ in range(number):
        asked = visitor(known, winners, losers).ask_next()
        item, rival = asked.item, asked.rival
        reasons.append(asked.reason)
        won = x[item, rival] > 0 if rng is None else rng.random() < 1 / (1 + np.exp(-x[item, rival]))
        winners.append(item if won else rival)
        losers.append(rival if won else item)
    return winners, losers, reasons, x


def test_without_answers_a_visitor_is_the_average_user(parameters):
    known = visitor(parameters)
    assert np.allclose(known.vector, parameters.user_factors.mean(axis=0), atol=1e-6)
    assert np.allclose(np.sqrt(np.diag(known.covariance)), parameters.user_factors.std(axis=0), atol=1e-6)


def test_answers_bring_the_list_near_the_truth(parameters, truth):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        xi = rng.uniform(-2, 2, 4)
        winners, losers, _, x = _answers(parameters, truth, xi, 20, rng)
        known = visitor(parameters, winners, losers)
        correlation = np.corrcoef(mean_margins(parameters, known.vector, None), x.mean(axis=1))[0, 1]
        assert correlation > 0.9
        assert known.sureness() > visitor(parameters, winners[:3], losers[:3]).sureness()


def test_margins_are_those_of_the_vector_and_their_deviation_that_of_the_draws(parameters):
    known = visitor(parameters, [1, 2, 3], [4, 5, 6])
    mean, deviation = known.margin([0, 7], [9, 8])
    assert np.allclose(mean, preference(parameters, known.vector, [0, 7], [9, 8]), atol=1e-4)
    drawn = np.array([preference(parameters, vector, [0, 7], [9, 8]) for vector in known.draws])
    assert np.allclose(drawn.std(axis=0), deviation, rtol=0.1)
    assert np.allclose(known.probability([0], [9]) + known.probability([9], [0]), 1)


def test_the_most_informative_question_is_the_one_least_sure(parameters):
    known = visitor(parameters, [1, 2, 3], [4, 5, 6])
    found = known.questions(np.arange(20), N=190)
    bits = [question.bits for question in found]
    assert bits == sorted(bits, reverse=True) and bits[-1] >= 0 and bits[0] <= 1
    assert {(1, 4), (2, 5), (3, 6)}.isdisjoint((q.item, q.rival) for q in found)  # asked already
    assert len(found) == 187


def test_places_are_intervals_around_the_list(parameters):
    known = visitor(parameters, [1, 2, 3], [4, 5, 6])
    places = known.places(10)
    assert (places["lower"] <= places["upper"]).all() and places["lower"].min() >= 1
    assert np.allclose(places["scores"], mean_margins(parameters, known.vector, places["items"]), atol=1e-4)
    assert (np.diff(places["scores"]) <= 0).all()
    assert places["first"].sum() <= 1


def test_an_answer_against_all_others_is_asked_again_with_its_sides_exchanged(parameters, truth):
    winners, losers, *_ = _answers(parameters, truth, np.array([1.5, -1.0, 0.5, 1.0]), 12)
    known = visitor(parameters, winners, losers)
    chances = known.probability(*np.triu_indices(60, 1))
    pair = int(np.argmin(np.abs(chances - 0.99)))
    item, rival = (int(side[pair]) for side in np.triu_indices(60, 1))
    contrary = visitor(parameters, [*winners, rival], [*losers, item])
    assert contrary.surprise[-1] < 0.1
    assert contrary.ask_next().reason != "surprise"  # it waits
    later = visitor(parameters, [*winners[:6], rival, *winners[6:]], [*losers[:6], item, *losers[6:]])
    question = later.ask_next()
    assert (question.item, question.rival, question.reason) == (item, rival, "surprise")
    settled = visitor(parameters, [rival, *winners, item], [item, *losers, rival])
    question = settled.ask_next()
    assert {question.item, question.rival} != {item, rival}  # each pair is asked again once


def test_a_cycle_in_the_taste_is_told_from_noise(parameters, truth):
    rng = np.random.default_rng(0)
    for _ in range(20):
        xi = rng.uniform(-2, 2, 4)
        true = Visitor(parameters, xi, np.eye(4) * 1e-9, *np.empty((2, 0), np.int64))
        found = true.cycles(30)
        if found and found[0].strength > 2:
            break
    path = found[0].path.tolist()
    after = path[1:] + path[:1]
    winners, losers, _, x = _answers(parameters, truth, xi, 20)
    real = visitor(parameters, winners + path, losers + after)
    mine = [c for c in real.contradictions if set(path) <= set(c.cycle.members)]
    assert mine and mine[0].probability > 0.5
    # The reverse of a step that is sure makes a cycle of another sort: noise.
    order = np.argsort(-x.mean(axis=1))
    for a, b, c in [(a, b, c) for a in order[:20] for b in order[20:40] for c in order[40:]]:
        if x[a, b] > 3 and x[b, c] > 3 and x[a, c] > 6:
            break
    noise = visitor(parameters, [*winners, a, b, c], [*losers, b, c, a])
    verdicts = [one.verdict for one in noise.contradictions if {a, b, c} <= set(one.cycle.members.tolist())]
    assert verdicts == ["noise"]


def test_scores_take_every_contradiction_for_noise(parameters):
    plain = Parameters(parameters.user_factors, parameters.item_factors)
    known = visitor(plain, [0, 1, 2], [1, 2, 0])
    assert [one.probability for one in known.contradictions] == [0.0]
    assert known.contradictions[0].verdict == "noise" and known.cycles() == []


def test_an_open_cycle_is_asked_about_again(parameters):
    found = tournament(parameters, parameters.user_factors.mean(axis=0), None)
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b, c = rng.choice(len(found), 3, replace=False).tolist()
        known = visitor(parameters, [a, b, c, 0, 1], [b, c, a, 59, 58])
        if known.contradictions and known.contradictions[0].verdict == "open":
            break
    question = known.ask_next()
    assert question.reason == "cycle" and {question.item, question.rival} <= {a, b, c}


def test_suspected_cycles_are_tested_every_fourth_question(parameters, truth):
    *_, reasons, _ = _answers(parameters, truth, np.array([1.5, -1.0, 0.5, 1.0]), 20)
    assert "step" not in reasons[:7] and "step" in reasons


def test_nothing_is_left_to_ask_about_two_items(parameters):
    assert visitor(parameters, [0], [1]).ask_next([0, 1]) is None


def test_a_cycle_through_an_item_is_the_strongest_of_all(games_of_five):
    from itertools import permutations

    for game in games_of_five:
        x = game.margins
        for item in game.items:
            paths = [
                (int(item), *rest) for n in (2, 3, 4) for rest in permutations([o for o in range(5) if o != item], n)
            ]
            weakest = [min(x[i, j] for i, j in zip(p, p[1:] + p[:1], strict=True)) for p in paths]
            best = max(weakest)
            found = cycle_through(game, item)
            if best <= 0:
                assert found is None
            else:
                assert found.strength == best and found.path[0] == item
                assert len(found) == min(len(p) for p, w in zip(paths, weakest, strict=True) if w == best)


@pytest.fixture(scope="module")
def games_of_five():
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (40, 5, 5)).astype(float)
    return [Tournament(np.arange(5), one - one.T) for one in x]


def test_cycle_through_names_an_item_that_does_not_take_part(games_of_five):
    with pytest.raises(ValueError, match="item 7 does not take part"):
        cycle_through(games_of_five[0], 7)


def test_the_share_of_users_that_a_rival_wins_is_counted(parameters, truth):
    met = head_to_head(parameters, 5)
    assert 5 not in met.rivals and len(met.rivals) == 59
    x = preference(parameters, np.arange(300)[:, None], met.rivals[None], 5)
    assert np.allclose(met.share, (np.sign(x).mean(axis=0) + 1) / 2)
    assert np.allclose(met.margin, x.mean(axis=0), atol=1e-4)
    first = met.strongest(3)
    assert (np.diff(met.share[first]) <= 0).all() and met.share[first[0]] == met.share.max()


def test_a_dethroner_changes_the_winner_and_stays_below_it(parameters):
    rng = np.random.default_rng(1)
    seen = 0
    for user in range(12):
        slate = rng.choice(60, 5, replace=False)
        for method in SLATE_METHODS:
            winner = rank_slate(tournament(parameters, user, slate), method).items[0]
            for one in dethroners(parameters, user, slate, np.arange(60), method):
                order = rank_slate(tournament(parameters, user, np.append(slate, one.item)), method).items.tolist()
                assert one.winner == winner != order[0] == one.new_winner
                assert one.place == order.index(one.item) + 1 > order.index(winner) + 1
                seen += 1
    assert seen


def test_scores_have_no_dethroner(parameters):
    plain = Parameters(parameters.user_factors, parameters.item_factors)
    for method in SLATE_METHODS:
        assert dethroners(plain, 0, [1, 2, 3], np.arange(60), method) == []
