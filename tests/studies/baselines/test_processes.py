"""Programs that are run leave a log, and nothing else."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.baselines.processes import run_logged, tail


def test_output_and_errors_go_to_the_log(tmp_path):
    log = tmp_path / "log"
    code = run_logged([sys.executable, "-c", "import sys; print('said'); sys.exit('went wrong')"], log)
    assert code == 1
    assert sorted(tail(log).splitlines()) == ["said", "went wrong"]


def test_the_tail_is_short(tmp_path):
    (tmp_path / "log").write_text("\n\n".join(map(str, range(100))))
    assert tail(tmp_path / "log", lines=2) == "98\n99"
    assert tail(tmp_path / "nothing") == "(it said nothing)"


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # a zombie that nobody has collected yet is gone too
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_time_up_ends_the_program_and_its_children(tmp_path):
    pids = tmp_path / "pids"
    parent = (
        "import os, subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); time.sleep(60)"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        run_logged([sys.executable, "-c", parent], tmp_path / "log", timeout=2)
    processes = [int(pid) for pid in pids.read_text().split()]
    assert len(processes) == 2
    deadline = time.monotonic() + 5
    while not all(map(gone, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, processes))
