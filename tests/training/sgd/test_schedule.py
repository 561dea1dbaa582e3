"""No two cells of a sub-epoch share a row, and everything is met exactly once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sadrec.training.sgd import schedule
from sadrec.training.sgd.given import Pairs, arrange


@given(st.integers(1, 40))
def test_drawn_negatives_meet_every_cell_once_and_share_nothing(blocks):
    plan = schedule.drawn_negatives(blocks)
    assert all(len(set(cells[:, 1])) == len(set(cells[:, 2])) == blocks for cells in plan)
    numbers = np.concatenate(plan)
    assert sorted(numbers[:, 0]) == list(range(blocks * blocks))
    assert len({(s, b) for _, s, b in numbers.tolist()}) == blocks * blocks


@given(st.integers(1, 20))
def test_round_robin_matches_every_two_teams_once(half):
    pair = schedule.round_robin(2 * half)
    assert pair.shape == (2 * half - 1, 2 * half)
    for row in pair:
        assert (np.bincount(row, minlength=half) == 2).all()
    met = schedule.matching_of(pair)
    off = met[~np.eye(2 * half, dtype=bool)]
    assert (off >= 0).all() and (met == met.T).all()
    assert (np.bincount(off, minlength=2 * half - 1) == 2 * half).all()


@pytest.mark.parametrize("teams", [0, 1, 3, -2])
def test_round_robin_refuses_odd_numbers(teams):
    with pytest.raises(ValueError, match=f"even number of teams.*{teams}"):
        schedule.round_robin(teams)


@settings(max_examples=60, deadline=None)
@given(
    users=st.integers(1, 40),
    items=st.integers(2, 50),
    shards=st.integers(1, 6),
    count=st.integers(1, 300),
    seed=st.integers(0, 10**6),
    epoch=st.integers(0, 5),
)
def test_given_pairs_are_each_in_one_cell_and_cells_share_no_row(users, items, shards, count, seed, epoch):
    rng = np.random.default_rng(seed)
    user = rng.integers(users, size=count).astype(np.int32)
    winner = rng.integers(items, size=count).astype(np.int32)
    loser = ((winner + rng.integers(1, items, size=count)) % items).astype(np.int32)
    arranged = arrange(Pairs(user, winner, loser), users, items, shards, seed, epoch)
    assert sorted(arranged.order) == list(range(count))
    for cells in schedule.given_pairs(shards):
        seen_users, seen_items = set(), set()
        for number in cells[:, 0]:
            inside = arranged.order[arranged.cell_start[number] : arranged.cell_start[number + 1]]
            mine = set(user[inside].tolist())
            things = set(winner[inside].tolist()) | set(loser[inside].tolist())
            assert not mine & seen_users and not things & seen_items
            seen_users |= mine
            seen_items |= things


def test_interleaving_keeps_the_order_of_each_schedule_and_mixes_them():
    mixed = schedule.interleave(schedule.drawn_negatives(4), schedule.given_pairs(2))
    assert [which for which, _ in mixed].count(0) == 4 and [which for which, _ in mixed].count(1) == 6
    for which, plan in enumerate((schedule.drawn_negatives(4), schedule.given_pairs(2))):
        mine = [cells for source, cells in mixed if source == which]
        assert all((a == b).all() for a, b in zip(mine, plan, strict=True))
    assert {which for which, _ in mixed[:3]} == {0, 1}
