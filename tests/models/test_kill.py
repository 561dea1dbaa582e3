"""A fit that is killed and run again ends with the same bits as one that was left alone."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD
from sadrec.models import CheckpointError

PROGRAM = """
import sys, time
import numpy as np, scipy.sparse as sp
from sadrec import SAD
rng = np.random.default_rng(0)
data = sp.csr_matrix(rng.random((300, 400)) < 0.05)
pause, first = float(sys.argv[2]), int(sys.argv[3])
def wait(epoch, figures, model):
    print(epoch, flush=True)
    time.sleep(pause if epoch >= first else 0)
model = SAD(factors=8, iterations=24, advanced={"adaptive": True}).fit(data, checkpoint=sys.argv[1], callbacks=[wait])
model.save(sys.argv[1] + "/done.sad")
"""


def start(folder, pause, first=0, **options):
    command = [sys.executable, "-c", PROGRAM, str(folder), str(pause), str(first)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ, **options)


def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with start(whole, 0) as quiet:
        assert quiet.wait(120) == 0
    with start(broken, 0.05) as process:
        for _ in range(5):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    with start(broken, 0) as process:
        assert process.wait(120) == 0
    one, two = SAD.load(whole / "done.sad"), SAD.load(broken / "done.sad")
    np.testing.assert_array_equal(one.user_factors, two.user_factors)
    np.testing.assert_array_equal(one.item_factors, two.item_factors)
    np.testing.assert_array_equal(one.rival_factors, two.rival_factors)
    assert len(two.state.history) == 24


@pytest.mark.slow
def test_two_fits_in_one_folder_of_which_both_are_killed_leave_the_same_bits_to_the_next(tmp_path):
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    with start(whole, 0) as quiet:
        assert quiet.wait(240) == 0
    with start(shared, 600, 4) as first:
        for _ in range(4):
            first.stdout.readline()
        second = start(shared, 0, stderr=subprocess.PIPE)
        output = second.communicate(timeout=240)[1]
        assert second.returncode == 1 and f"in use by another process (id {first.pid})" in output
        with start(shared, 0) as third:  # killed while it is being refused, perhaps
            first.send_signal(signal.SIGKILL)
            third.send_signal(signal.SIGKILL)
    assert {first.returncode, third.returncode} == {-signal.SIGKILL}
    with start(shared, 0) as last:
        assert last.wait(240) == 0
    assert (shared / "done.sad").read_bytes() == (whole / "done.sad").read_bytes()
    assert not list(shared.glob(".*.part")) and not (shared / ".lock-owner").exists()


def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path):
    dense = np.random.default_rng(0).random((20, 30)) < 0.3
    data, other = sp.csr_matrix(dense), dense.copy()
    SAD(factors=4, iterations=2).fit(data, checkpoint=tmp_path)
    other[0, 0] = not other[0, 0]
    for model, given, what in (
        (SAD(factors=4, iterations=2), sp.csr_matrix(other), "another data"),
        (SAD(factors=4, iterations=3), data, "iterations was 2 and is 3"),
        (SAD(factors=4, iterations=2, random_state=1), data, "seed was 0 and is 1"),
    ):
        with pytest.raises(CheckpointError, match=what):
            model.fit(given, checkpoint=tmp_path)
    SAD(factors=4, iterations=2, num_threads=1).fit(data, checkpoint=tmp_path)  # threads are not part of it


def test_a_damaged_checkpoint_is_said_and_the_one_before_it_taken(tmp_path, caplog):
    data = np.random.default_rng(0).random((20, 30)) < 0.3
    whole = SAD(factors=4, iterations=4).fit(data, checkpoint=tmp_path)
    newest = max(tmp_path.glob("*.checkpoint"))
    newest.write_bytes(newest.read_bytes()[:300])
    again = SAD(factors=4, iterations=4).fit(data, checkpoint=tmp_path)
    assert newest.name in caplog.text and "cut short" in caplog.text
    np.testing.assert_array_equal(again.user_factors, whole.user_factors)
