"""The machinery of the campaigns: what is counted, and that nothing that dies or hangs goes unnoticed."""

import os
import signal
import time

import numpy as np
import pytest

from campaigns import _trials
from campaigns._mutations import damaged, forged, lying
from campaigns._trials import Campaign, Outcome, in_fork, run
from sadrec._core.files import read_arrays, write_arrays


def campaign(trial, **options):
    return Campaign("trials", ("fine",), ("bad",), lambda folder: folder, trial, **options)


def test_outcomes_are_counted_and_summed_up_in_a_line():
    report = run(campaign(lambda subject, rng, folder: Outcome("fine")), range(1200), show_progress=False)
    assert str(report).startswith("1,200 trials: 1,200 fine, 0 bad, 0 crashes, 0 endless; peak memory ")
    assert not report.broken


def test_a_trial_is_repeated_by_its_number():
    def trial(subject, rng, folder):
        return Outcome("bad", str(rng.integers(2**40)))

    both = run(campaign(trial), range(2), seed=3, show_progress=False).broken
    again = run(campaign(trial), range(1, 2), seed=3, show_progress=False).broken
    assert both[1] == again[0] and both[0][1] != both[1][1]


def test_outcomes_are_kept_and_trials_not_repeated(tmp_path):
    done = tmp_path / "done"

    def trial(subject, rng, folder):
        with done.open("a") as file:
            file.write("x")
        return Outcome("fine" if rng.random() < 0.5 else "bad")

    once = run(campaign(trial), range(30), seed=3, show_progress=False)
    kept = tmp_path / "kept"
    run(campaign(trial), range(20), seed=3, show_progress=False, kept=kept)
    kept.write_bytes(kept.read_bytes()[:-4])  # cut by a kill
    both = run(campaign(trial), range(30), seed=3, show_progress=False, kept=kept)
    assert both.counts == once.counts and sorted(both.broken) == sorted(once.broken) and both.peak
    assert len(done.read_text()) == 30 + 20 + 11


def test_what_trials_counted_is_summed_up_and_kept(tmp_path):
    def trial(subject, rng, folder):
        return Outcome("fine", figures={"asked": 2, str(rng.integers(2)): 1})

    def told(figures):
        return f"{figures['asked']} asked, {figures['0'] + figures['1']} told"

    kept = tmp_path / "kept"
    run(campaign(trial, told=told), range(3), show_progress=False, kept=kept)
    assert str(run(campaign(trial, told=told), range(5), show_progress=False, kept=kept)).endswith("; 10 asked, 5 told")


def test_a_run_without_a_terminal_says_what_it_did_so_far(monkeypatch, capsys):
    monkeypatch.setattr(_trials, "EVERY", 0.0)
    run(campaign(lambda subject, rng, folder: Outcome("fine")), range(3))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" fine")[0] for line in lines] == ["so far: 1 trials: 1", "so far: 2 trials: 2"]


def test_what_dies_is_counted_and_the_rest_goes_on():
    def trial(subject, rng, folder):
        number = rng.integers(2**40)
        if number % 3 == 0:
            os.abort()
        if number % 3 == 1:
            raise KeyError("nobody expects this")
        return Outcome("fine")

    kinds = [np.random.default_rng((0, number)).integers(2**40) % 3 for number in range(12)]
    report = run(campaign(trial), range(12), show_progress=False)
    assert report.counts["fine"] == kinds.count(2) and report.counts["crashes"] == 12 - kinds.count(2)
    details = " ".join(outcome.detail for _, outcome in report.broken)
    assert f"signal {signal.SIGABRT}" in details and "nobody expects this" in details


def test_what_hangs_is_ended():
    report = run(campaign(lambda subject, rng, folder: time.sleep(60), seconds=0.3), range(2), show_progress=False)
    assert report.counts == {"endless": 2}


def test_memory_is_bounded():
    def trial(subject, rng, folder):
        try:
            np.ones(2**28)
        except MemoryError:
            return Outcome("fine")
        return Outcome("bad")

    assert run(campaign(trial, memory=0.5), range(1), show_progress=False).counts == {"fine": 1}


def test_a_word_that_was_not_declared_is_an_error():
    with pytest.raises(ValueError, match="not a declared outcome"):
        run(campaign(lambda subject, rng, folder: Outcome("splendid")), range(1), show_progress=False)


def test_trials_that_cannot_be_prepared_say_why():
    def prepare(folder):
        raise OSError("there is nothing to try")

    broken = Campaign("trials", ("fine",), (), prepare, lambda subject, rng, folder: Outcome("fine"))
    with pytest.raises(RuntimeError, match="there is nothing to try"):
        run(broken, range(1), show_progress=False)


@pytest.mark.parametrize(
    ("work", "code"),
    [(lambda: None, 0), (lambda: 1 / 0, 1), (lambda: signal.raise_signal(signal.SIGKILL), -9), (lambda: exit(7), 7)],
)
def test_how_a_fork_ends_is_told(tmp_path, work, code):
    assert in_fork(work, tmp_path).code == code


def test_a_fork_that_never_ends_is_ended_and_says_where_it_stood(tmp_path):
    def wait_for_ever():
        time.sleep(600)

    ended = in_fork(wait_for_ever, tmp_path, seconds=0.2)
    assert ended.code == -signal.SIGALRM
    assert "in wait_for_ever" in ended.output


def test_damage_changes_a_file_the_same_way_for_the_same_seed(tmp_path):
    path = tmp_path / "a"
    write_arrays(path, {"x": np.arange(30.0), "n": np.arange(4)}, {"kind": "test", "values": [1, 2]})
    raw = path.read_bytes()
    for change in (damaged, lying):
        results = [change(raw, np.random.default_rng(seed)) for seed in range(60)]
        assert results == [change(raw, np.random.default_rng(seed)) for seed in range(60)]
        assert sum(result != raw for result in results) > 50
    for seed in range(40):
        path.write_bytes(raw)
        forged(path, np.random.default_rng(seed))
        read_arrays(path, "a forged file")  # its checksum is right
