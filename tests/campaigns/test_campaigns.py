"""A short run of every campaign: no promise is broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = {
    "kill": 12,
    "interrupt": 12,
    "model_file": 100,
    "checkpoint": 30,
    "table": 150,
    "array": 500,
    "comparison": 25,
}
COUNTS |= {"resource": 8, "thread": 8, "api": 1, "service": 100, "hardship": 7}
ON_RAY = {"cluster", "recommend_all"}  # tests/cluster runs them


@pytest.mark.parametrize("name", COUNTS)
def test_no_promise_is_broken(name):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", f"campaigns.{name}", "--count", str(COUNTS[name]), "--seed", "7", "--quiet"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith(f"{COUNTS[name]} ") and "0 crashes, 0 endless" in run.stdout


def test_every_campaign_is_run_here():
    assert set(COUNTS) | ON_RAY == {path.stem for path in (ROOT / "campaigns").glob("[!_]*.py")}
