"""Whole runs: threads, interruptions, checkpoints, memory."""

import logging
import threading
import time

import numpy as np
import pytest

from sadrec._core.record import locked
from sadrec.data import simulate
from sadrec.models import CheckpointError, checkpoints_in
from sadrec.posterior import GibbsSAD, sampling
from tests.rewriting import with_array


@pytest.fixture(scope="module")
def data():
    return simulate(n=6, m=12, k=2, seed=1).comparisons


def quick(**changes):
    return GibbsSAD(**{"factors": 3, "draws": 12, "warmup": 5, "chains": 2, "random_state": 4, **changes})


def same(one, other):
    for name in ("user", "item", "rival", "scales"):
        np.testing.assert_array_equal(getattr(one.drawn, name), getattr(other.drawn, name))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_draws_are_the_same_bits_for_any_number_of_threads(data, threads, monkeypatch):
    monkeypatch.setattr(sampling, "_WORTH_SHARING", 10)
    assert sampling.shares(threads, 2, len(data)) == threads // 2
    same(
        quick(num_threads=1).fit(data, show_progress=False),
        quick(num_threads=threads).fit(data, show_progress=False),
    )


def test_a_chain_does_not_depend_on_how_many_there_are(data):
    two, one = quick().fit(data, show_progress=False), quick(chains=1, num_threads=4).fit(data, show_progress=False)
    np.testing.assert_array_equal(two.drawn.user[:1], one.drawn.user)


def test_the_order_of_the_comparisons_does_not_matter(data):
    order = np.random.default_rng(0).permutation(len(data))
    shuffled = type(data).from_indices(
        data.user_index[order], data.winner_index[order], data.loser_index[order], users=data.users, items=data.items
    )
    same(quick().fit(data, show_progress=False), quick().fit(shuffled, show_progress=False))


def test_other_seeds_give_other_draws(data):
    assert not np.array_equal(
        quick().fit(data, show_progress=False).drawn.user,
        quick(random_state=5).fit(data, show_progress=False).drawn.user,
    )


def test_thinning_keeps_every_nth_sweep(data):
    all_of_them = quick(draws=12).fit(data, show_progress=False).drawn
    some = quick(draws=4, thin=3).fit(data, show_progress=False).drawn
    np.testing.assert_array_equal(all_of_them.user[:, 2::3], some.user)


class Stop(Exception):
    pass


@pytest.mark.parametrize("turns", [2, 9])
def test_a_killed_run_continues_and_ends_with_the_same_bits(data, tmp_path, monkeypatch, interrupt_after, turns):
    whole = quick().fit(data, show_progress=False)
    with monkeypatch.context() as patch:
        interrupt_after(patch, turns, Stop())
        with pytest.raises(Stop):
            quick().fit(data, show_progress=False, checkpoint=tmp_path, checkpoint_seconds=0)
    assert len(checkpoints_in(tmp_path)) == 2
    same(whole, quick().fit(data, show_progress=False, checkpoint=tmp_path))


def test_ctrl_c_keeps_the_draws_so_far_and_the_run_can_go_on(data, tmp_path, monkeypatch, interrupt_after):
    whole = quick().fit(data, show_progress=False)
    result = quick()
    with monkeypatch.context() as patch:
        interrupt_after(patch, 9, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            result.fit(data, show_progress=False, checkpoint=tmp_path)
    assert result.drawn.user.shape[1] == 4
    np.testing.assert_array_equal(result.drawn.user, whole.drawn.user[:, :4])
    assert np.isfinite(result.preference(0, 1, 2)).all()
    same(whole, quick().fit(data, show_progress=False, checkpoint=tmp_path))


def test_ctrl_c_before_the_first_draw_leaves_the_object_as_it_was(data, monkeypatch, interrupt_after):
    result = quick()
    interrupt_after(monkeypatch, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        result.fit(data, show_progress=False)
    assert "not fitted" in repr(result)


def test_ctrl_c_before_all_chains_began_their_turn_keeps_only_what_all_have(data, tmp_path, monkeypatch):
    whole, real, done = quick().fit(data, show_progress=False), sampling._turn, []

    def turn(chains, *rest):
        done.append(1)
        if len(done) < 10:
            return real(chains, *rest)
        real(chains[:1], *rest)
        raise KeyboardInterrupt

    result = quick()
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "_turn", turn)
        patch.setattr(sampling, "_ROUND_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            result.fit(data, show_progress=False, checkpoint=tmp_path)
    np.testing.assert_array_equal(result.drawn.user, whole.drawn.user[:, :4])
    same(whole, quick().fit(data, show_progress=False, checkpoint=tmp_path))


def test_a_file_in_the_place_of_the_checkpoints_is_refused_before_the_first_sweep(data, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        quick(draws=10**6).fit(data, show_progress=False, checkpoint=tmp_path / "taken")
    with pytest.raises(ValueError, match="checkpoint_seconds"):
        quick().fit(data, show_progress=False, checkpoint=tmp_path, checkpoint_seconds=-1)


def test_a_real_ctrl_c_is_heard_within_seconds(data):
    import _thread

    timer = threading.Timer(1.0, _thread.interrupt_main)
    result = quick(draws=10**5)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        result.fit(data, show_progress=False)
    assert time.monotonic() - began < 30
    assert 0 < result.drawn.user.shape[1] < 10**5


def test_more_draws_continue_a_finished_run(data, tmp_path):
    quick(draws=5).fit(data, show_progress=False, checkpoint=tmp_path)
    same(quick().fit(data, show_progress=False), quick().fit(data, show_progress=False, checkpoint=tmp_path))


def test_fewer_draws_are_the_first_ones_of_a_finished_run(data, tmp_path):
    whole = quick().fit(data, show_progress=False, checkpoint=tmp_path)
    few = quick(draws=7).fit(data, show_progress=False, checkpoint=tmp_path)
    np.testing.assert_array_equal(few.drawn.user, whole.drawn.user[:, :7])


def test_a_damaged_checkpoint_is_made_again(data, tmp_path, caplog):
    whole = quick().fit(data, show_progress=False, checkpoint=tmp_path)
    (part,) = checkpoints_in(tmp_path)
    part.write_bytes(part.read_bytes()[:-7])
    with caplog.at_level(logging.WARNING, "sadrec"):
        same(whole, quick().fit(data, show_progress=False, checkpoint=tmp_path))
    assert "computed again" in caplog.text


def test_checkpoints_of_another_run_are_refused(data, tmp_path):
    quick().fit(data, show_progress=False, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="item_scale"):
        quick(item_scale=2.0).fit(data, show_progress=False, checkpoint=tmp_path)


def test_memory_is_stated_and_too_much_is_refused(data, caplog):
    need = quick().memory(data)
    result = quick().fit(data, show_progress=False)
    assert need["draws"] == sum(array.nbytes for array in vars(result.drawn).values())
    with caplog.at_level(logging.INFO, "sadrec"):
        quick().fit(data, show_progress=False)
    assert "KiB of memory" in caplog.text
    with pytest.raises(ValueError, match="keep fewer draws"):
        quick(draws=10**12).fit(data, show_progress=False)


def test_chains_that_disagree_are_reported(data, caplog):
    with caplog.at_level(logging.WARNING, "sadrec"):
        quick(draws=4, warmup=0).fit(data, show_progress=False)
    assert "do not agree" in caplog.text


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("xi_0", lambda array: array[:-1]),
        ("tau_1", lambda array: array.astype(np.float32)),
        ("eta_0", lambda array: np.full_like(array, np.inf)),
        ("user_draws_1", lambda array: np.full_like(array, np.nan)),
        ("item_draws_0", lambda array: array[:3]),
    ],
)
def test_a_checkpoint_of_the_wrong_shape_type_or_numbers_is_made_again(data, tmp_path, caplog, name, change):
    whole = quick().fit(data, show_progress=False, checkpoint=tmp_path)
    (part,) = checkpoints_in(tmp_path)
    with_array(part, name, change)
    with caplog.at_level(logging.WARNING, "sadrec"):
        same(whole, quick().fit(data, show_progress=False, checkpoint=tmp_path))
    assert f": {name[:-2]} " in caplog.text and "cannot be used" in caplog.text


def test_a_folder_that_another_run_uses_is_refused(data, tmp_path):
    with locked(tmp_path), pytest.raises(CheckpointError, match="in use"):
        quick().fit(data, show_progress=False, checkpoint=tmp_path)
    assert quick().fit(data, show_progress=False, checkpoint=tmp_path).is_fitted


def test_draws_whose_prior_is_infinite_where_it_was_not_are_made_again(data, tmp_path):
    quick().fit(data, show_progress=False, checkpoint=tmp_path, checkpoint_seconds=1000)
    (file,) = checkpoints_in(tmp_path)
    with_array(file, "prior_0", lambda prior: np.append(np.inf, prior[1:]))
    longer = quick(draws=14).fit(data, show_progress=False)
    same(longer, quick(draws=14).fit(data, show_progress=False, checkpoint=tmp_path))
