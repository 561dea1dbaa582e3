"""What a visitor is asked."""

import numpy as np
import pytest

from sadrec import SAD, Comparisons
from sadrec.data import simulate
from sadrec.ranking import contradictions, surprises
from sadrec.ranking.cycles import cycles
from sadrec.ranking.tournament import Tournament
from sadrec.serving.interview import next_question


@pytest.fixture(scope="module")
def people():
    return simulate("sim2", n=300, m=60, k=4, comparisons_per_user=2, seed=3)


@pytest.fixture(scope="module")
def model(people):
    return SAD.from_factors(people.user_factors, people.item_factors, people.rival_factors)


def said_by(model, pairs):
    if not pairs:
        return None
    winners, losers = np.array(pairs).T
    return Comparisons.from_indices(np.zeros(len(pairs), int), winners, losers, users=["visitor"], items=model.items)


def question(model, pairs, items=None):
    comparisons = said_by(model, pairs)
    items = list(model.items) if items is None else items
    return next_question(
        model.visitor(comparisons=comparisons), "visitor", items, comparisons, contradictions_in(model, pairs)
    )


def contradictions_in(model, pairs):
    """The contradictions in answers about items whose ids are their positions."""
    return contradictions(belief_of(model, pairs), *np.array(pairs).T) if pairs else []


def belief_of(model, pairs):
    return model.visitor(comparisons=said_by(model, pairs)).state.belief


def interviewed(model, taste, number):
    """Ask somebody whose margins are known, and who always answers so."""
    pairs, reasons = [], []
    for _ in range(number):
        shown = question(model, pairs)
        item, rival = int(shown.item), int(shown.rival)
        pairs.append((item, rival) if taste[item, rival] > 0 else (rival, item))
        reasons.append(shown.reason)
    return pairs, reasons


@pytest.fixture(scope="module")
def taste(people):
    half = (people.item_factors * np.array([1.5, -1.0, 0.5, 1.0])) @ people.rival_factors.T
    return half - half.T


@pytest.fixture(scope="module")
def interview(model, taste):
    return interviewed(model, taste, 16)


def test_answers_bring_the_list_near_the_truth(model, taste, interview):
    pairs, _ = interview
    scores = model.visitor(comparisons=said_by(model, pairs)).scores("visitor")
    assert np.corrcoef(scores, taste.mean(axis=1))[0, 1] > 0.9


def test_no_question_is_asked_twice_without_a_reason(interview):
    pairs, reasons = interview
    seen = set()
    for pair, reason in zip(map(frozenset, pairs), reasons, strict=True):
        assert pair not in seen or reason in ("cycle", "surprise")
        seen.add(pair)


def test_probable_cycles_are_tested(interview):
    assert "step" not in interview[1][:7] and "step" in interview[1]


def test_a_new_question_shows_other_items_than_the_last(model):
    shown = question(model, [(3, 4)])
    assert shown.reason == "new" and not {shown.item, shown.rival} & {3, 4}
    best = model.visitor(comparisons=said_by(model, [(3, 4)])).ask_next("visitor", None, 400)
    assert shown.bits >= best["bits"].to_numpy()[-1]


def test_the_bits_are_those_of_ask_next(model):
    shown = question(model, [(3, 4), (5, 6)])
    rows = model.visitor(comparisons=said_by(model, [(3, 4), (5, 6)])).ask_next("visitor", [shown.item, shown.rival])
    assert rows.row(0)[2:] == pytest.approx((shown.bits, shown.probability))


def test_an_answer_against_the_others_is_asked_again_with_its_sides_exchanged(model, taste, interview):
    pairs = interview[0]
    visitor = model.visitor(comparisons=said_by(model, pairs))
    one, other = np.triu_indices(60, 1)
    chances = visitor.probability("visitor", one, other)
    at = int(np.argmin(np.abs(chances - 0.97)))
    slip = (int(other[at]), int(one[at]))
    contrary = [*pairs[:6], slip, *pairs[6:]]
    assert surprises(belief_of(model, contrary), *np.array(contrary).T).argmin() == 6
    shown = question(model, contrary)
    assert (shown.item, shown.rival, shown.reason) == (slip[1], slip[0], "surprise")
    assert {question(model, [*pairs, slip]).item, question(model, [*pairs, slip]).rival} != set(slip)  # it waits
    settled = question(model, [*contrary, slip[::-1], *pairs[:2]])
    assert {settled.item, settled.rival} != set(slip)  # once more is enough


def test_a_surprise_is_what_the_other_answers_say(model, interview):
    pairs = interview[0]
    chances = surprises(belief_of(model, pairs), *np.array(pairs).T)
    for at in (0, 5, 11):
        rest = model.visitor(comparisons=said_by(model, pairs[:at] + pairs[at + 1 :]))
        assert chances[at] == pytest.approx(rest.probability("visitor", *pairs[at]), abs=0.1)


def test_an_open_cycle_is_asked_about_again(model):
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b, c = rng.choice(60, 3, replace=False).tolist()
        pairs = [(a, b), (b, c), (c, a), (0, 59), (1, 58)]
        (contradiction, *_) = contradictions_in(model, pairs)
        if 0.2 < contradiction.probability < 0.8:
            break
    shown = question(model, pairs)
    assert shown.reason == "cycle" and {shown.item, shown.rival} <= {a, b, c}


def test_nothing_is_left_to_ask_about_two_items(model):
    assert question(model, [(0, 1)], [0, 1]) is None


def test_a_cycle_in_answers_is_found_as_the_tournament_of_answers_has_it(model):
    pairs = [(0, 1), (1, 2), (2, 0)]
    (contradiction,) = contradictions_in(model, pairs)
    wins = np.zeros((3, 3))
    for winner, loser in pairs:
        wins[winner, loser], wins[loser, winner] = 1, -1
    assert cycles(Tournament(np.arange(3), wins))[0].path.tolist() == contradiction.path.tolist()
