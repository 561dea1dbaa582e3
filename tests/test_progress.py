"""Progress bars: what another process holds does not hold up this one."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sadrec._core.progress import Bar

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")

KILLED = """
import os, signal, sys
import numpy as np
from tqdm.auto import tqdm
tqdm(disable=True)  # the lock is made, and shared with forks
if (child := os.fork()) == 0:
    tqdm.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
from sadrec import SAD, Comparisons
from sadrec.posterior import GibbsSAD
model = SAD(2, iterations=1).fit(np.eye(9), show_progress=False)
model.recommend_all(N=1, output=sys.argv[1], show_progress=False)
said = Comparisons.from_indices([0, 0], [0, 1], [1, 2], users=[0], items=[0, 1, 2])
GibbsSAD(factors=1, draws=2, warmup=1, chains=1).fit(said, show_progress=False)
"""


def test_a_fork_that_was_killed_while_it_drew_a_bar_holds_up_nobody(tmp_path):
    # The campaign of interrupts once hung: forks waited for the lock of one that a signal had ended.
    command = [sys.executable, "-c", KILLED, str(tmp_path / "lists")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr


def test_a_fork_waits_for_no_thread_of_its_parent():
    code = """
import os, signal, threading
from sadrec._core.progress import Bar
held = threading.Event()
def hold():
    with Bar.get_lock():
        held.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
if (child := os.fork()) == 0:
    signal.alarm(20)
    Bar(disable=True).close()
    os._exit(0)
os._exit(os.waitpid(child, 0)[1] != 0)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


def test_bars_are_those_of_tqdm(capsys):
    with Bar(total=2, desc="counting", file=sys.stderr) as bar:
        bar.update(2)
    assert "counting: 100%" in capsys.readouterr().err
    assert isinstance(Bar.get_lock(), type(threading.RLock()))


def test_all_bars_of_the_library_are_such_bars():
    sources = Path(sys.modules["sadrec"].__path__[0]).rglob("*.py")
    plain = [path.name for path in sources if "from tqdm" in path.read_text() and path.name != "progress.py"]
    assert plain == []
