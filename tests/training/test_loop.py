"""The loop with epochs of gradient ascent: early stopping, divergence, Ctrl-C, checkpoints."""

import os
import signal
import tempfile
import threading
import time

import numpy as np
import pytest

from sadrec._core.files import fingerprint
from sadrec.models import DivergedError, checkpoints_in
from sadrec.training.checkpoint import LocalCheckpoints
from sadrec.training.sgd.trainer import Trainer
from tests.training.small import bits, loaded, pairs, run, trainer


def test_the_best_epoch_is_kept():
    copies = {}
    work = trainer(schedule="constant", learning_rate=0.5, iterations=12)
    history = run(
        work, validation=pairs(7, 60), after_epoch=lambda e, f: copies.setdefault(e, work.factors.copy()) is None
    )
    values = [figures["validation_log_likelihood"] for figures in history]
    best = int(np.argmax(values)) + 1
    np.testing.assert_array_equal(work.factors.items, copies[best].items)
    assert len(history) == 12


def test_patience_ends_the_run():
    work = trainer(iterations=50, learning_rate=0.0)  # nothing ever improves
    history = run(work, validation=pairs(7, 60), patience=3)
    assert len(history) == 4


HASTY = {"learning_rate": 0.3, "rival_regularization": 0.0, "iterations": 12}
"""Settings that overfit half way."""


def test_one_run_is_made_however_early_its_best_epoch():
    history = run(trainer(**HASTY), validation=pairs(7, 60))
    assert len(history) == 12
    assert 1 < int(np.argmax([figures["validation_log_likelihood"] for figures in history])) + 1 < 10


@pytest.mark.parametrize("patience", [None, 2])
def test_a_run_that_was_killed_around_its_best_epoch_resumes_with_the_same_bits(tmp_path, patience):
    whole, held = trainer(**HASTY), pairs(7, 60)
    history = run(whole, validation=held, patience=patience)

    class Killed(Exception):
        pass

    for stop in range(1, len(history) + 1):
        folder = tmp_path / str(stop)

        def kill(epoch, figures, stop=stop):
            if epoch == stop:
                raise Killed

        options = {"validation": held, "patience": patience}
        with pytest.raises(Killed):
            run(trainer(**HASTY), after_epoch=kill, checkpoints=LocalCheckpoints(folder, {}), **options)
        again = trainer(**HASTY)
        assert run(again, checkpoints=LocalCheckpoints(folder, {}), **options) == history
        assert bits(again) == bits(whole)


def test_patience_without_a_validation_set_is_refused():
    with pytest.raises(ValueError, match="needs a validation set"):
        run(trainer(), patience=3)


def test_a_callback_ends_the_run():
    work = trainer()
    assert len(run(work, after_epoch=lambda epoch, figures: epoch == 3)) == 3


@pytest.mark.filterwarnings("error")
def test_divergence_stops_with_advice_at_the_last_good_epoch():
    work = trainer(learning_rate=1e30, regularization=0.0, rival_regularization=0.0, iterations=20)
    seen = []
    with pytest.raises(DivergedError, match=r"diverged in epoch \d+.*lower learning_rate"):
        run(work, after_epoch=lambda epoch, figures: seen.append(work.factors.copy()))
    assert work.factors.finite()
    if seen:
        np.testing.assert_array_equal(work.factors.users, seen[-1].users)


def test_ctrl_c_leaves_the_last_whole_epoch_and_a_checkpoint(tmp_path, monkeypatch):
    whole = trainer()
    run(whole)
    work = trainer()
    copies = []

    def stop(epoch, figures):
        copies.append(work.factors.copy())

    original = work.train_epoch

    def interrupted(between):
        if work.done == 3:
            work.factors.users[:] = 99  # in the middle of the fourth epoch
            raise KeyboardInterrupt
        return original(between)

    monkeypatch.setattr(work, "train_epoch", interrupted)
    checkpoints = LocalCheckpoints(tmp_path, {"data": "x"}, seconds=1000)
    with pytest.raises(KeyboardInterrupt):
        run(work, after_epoch=stop, checkpoints=checkpoints)
    np.testing.assert_array_equal(work.factors.users, copies[-1].users)
    again = trainer()
    run(again, checkpoints=LocalCheckpoints(tmp_path, {"data": "x"}))
    assert bits(again) == bits(whole)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("stop", [1, 8, 11])
def test_a_resumed_run_ends_with_the_same_bits_and_history(tmp_path, adaptive, stop):
    held = pairs(7, 60)
    whole = trainer(adaptive=adaptive, iterations=24 if adaptive else 12)
    history = run(whole, validation=held)
    if stop >= whole.total:
        stop = whole.total - 1
    first = trainer(adaptive=adaptive, iterations=24 if adaptive else 12)

    class Killed(Exception):
        pass

    def kill(epoch, figures):
        if epoch == stop + 1:
            raise Killed

    with pytest.raises(Killed):
        run(first, validation=held, after_epoch=kill, checkpoints=LocalCheckpoints(tmp_path, {}))
    second = trainer(adaptive=adaptive, iterations=24 if adaptive else 12)
    resumed = run(second, validation=held, checkpoints=LocalCheckpoints(tmp_path, {}))
    assert bits(second) == bits(whole)
    assert [f["validation_log_likelihood"] for f in resumed] == [f["validation_log_likelihood"] for f in history]


class Interrupted:
    """A temporary file; of all such files, the last write that ``left`` counts ends in Ctrl-C when half is done."""

    def __init__(self, file, left):
        self._file, self._left = file, left

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        self._left[0] -= 1
        if self._left[0] == 0:
            self._file.write(data[: len(data) // 2])
            raise KeyboardInterrupt
        return self._file.write(data)


@pytest.mark.parametrize("at", range(4, 13))
def test_an_interrupt_while_the_snapshot_is_written_leaves_whole_epochs_everywhere(tmp_path, monkeypatch, at):
    epochs = {}
    whole = trainer()
    run(whole, after_epoch=lambda epoch, figures: epochs.__setitem__(epoch, bits(whole)))
    make, left = tempfile.TemporaryFile, [at]
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **options: Interrupted(make(**options), left))
        work, history = trainer(), []
        with pytest.raises(KeyboardInterrupt):
            run(work, checkpoints=LocalCheckpoints(tmp_path, {}, seconds=1000), history=history)
    done = (at - 1) // 3 - 1  # three arrays for each snapshot, the first of them before training
    assert work.done == len(history) == done
    if done:
        assert bits(work) == epochs[done]
        factors, epoch = loaded(tmp_path, work)
        assert epoch == done and factors.users.tobytes() + factors.items.tobytes() in epochs[done]
    else:
        assert not checkpoints_in(tmp_path)
    again = trainer()
    run(again, checkpoints=LocalCheckpoints(tmp_path, {}))
    assert bits(again) == bits(whole)


def test_the_fingerprint_tells_values_types_and_shapes_apart():
    base = np.arange(6)
    others = [base[::-1], base.astype(np.int32), base.reshape(2, 3), base.astype(float)]
    assert len({fingerprint(array) for array in [base, *others]} | {fingerprint(base, None)}) == 6
    assert fingerprint(base) == fingerprint(base.copy())


def test_ctrl_c_waits_for_a_safe_point(tmp_path):
    # The signal comes at any moment; what is saved is always a whole epoch of the undisturbed run.
    whole = {}
    one = trainer(iterations=60)
    run(one, after_epoch=lambda epoch, figures: whole.__setitem__(epoch, bits(one)))
    for delay in np.linspace(0.0, 0.05, 12):
        folder = tmp_path / f"{delay:.4f}"
        work = trainer(iterations=60)
        work._threads = 2
        timer = threading.Timer(float(delay), lambda: os.kill(os.getpid(), signal.SIGINT))

        def slow(epoch, figures, timer=timer):
            if epoch == 1:
                timer.start()
            time.sleep(0.002)

        with pytest.raises(KeyboardInterrupt):
            run(work, after_epoch=slow, checkpoints=LocalCheckpoints(folder, {}, seconds=1000))
        timer.join()
        factors, epoch = loaded(folder, work)
        saved = factors.users.tobytes() + factors.items.tobytes() + factors.bias.tobytes()
        assert saved == whole[epoch] == bits(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_again_and_again_while_threads_are_at_work_saves_whole_epochs_only(tmp_path, monkeypatch):
    whole = trainer()
    run(whole)
    main, real, times = threading.main_thread().ident, Trainer._pass_over_pairs, []

    def insist_and_change(cells, claimed, given, factors, *rest):
        """Press Ctrl-C three times and go on changing the factors, as a long cell does."""
        times.append(1)
        if len(times) == 1:
            for _ in range(3):
                time.sleep(0.1)
                signal.pthread_kill(main, signal.SIGINT)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            factors.users[:] = np.random.default_rng(0).standard_normal(factors.users.shape)

    def from_the_third_epoch_on(self, figures):
        given = real(self, figures)
        return given._replace(kernel=insist_and_change) if self.done == 2 else given

    def restore_slowly(self, snapshot):
        restore(self, snapshot)
        time.sleep(0.05)

    restore = Trainer.restore
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_pass_over_pairs", from_the_third_epoch_on)
        patch.setattr(Trainer, "restore", restore_slowly)
        work = trainer()
        work._threads = 2
        with pytest.raises(KeyboardInterrupt):
            run(work, checkpoints=LocalCheckpoints(tmp_path, {}, seconds=1000))
    time.sleep(0.4)
    again = trainer()
    run(again, checkpoints=LocalCheckpoints(tmp_path, {}))
    assert bits(again) == bits(whole)
