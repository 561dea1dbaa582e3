"""A real cluster of three raylets, in a network namespace of its own: fits, and recommendations for everybody."""

import subprocess
import sys
from pathlib import Path

import pytest

from campaigns import _namespace
from tests.cluster.namespace import inside


@pytest.fixture(scope="module")
def results(tmp_path_factory, once_for_all_workers):
    folder = tmp_path_factory.mktemp("ray")
    return once_for_all_workers("ray", lambda: inside("scenes:one_after_another", 3, str(folder)))


@pytest.fixture
def played(results):
    """What a scene has come to, unless it failed."""

    def result(name):
        result_of_scene = dict(results[name])
        assert "error" not in result_of_scene, result_of_scene["error"]
        return result_of_scene

    return result


def test_workers_read_files_and_the_bits_are_those_of_one_machine(played):
    result = played("fits")
    assert len(result) == 11 and all(result.values()), result


def test_the_lists_of_everybody_are_those_of_one_machine(played):
    result = played("everybody")
    warned = result.pop("told")
    assert len(result) == 6 and all(result.values()), result
    assert "gone.sad' is not there on" in warned and "in folders that all nodes share" in warned


@pytest.mark.parametrize(
    ("name", "count", "promise"), [("cluster", 4, "4 of 4 ended as promised"), ("recommend_all", 4, "4 same files, 0")]
)
def test_workers_nodes_and_programs_are_killed_and_the_result_stays(name, count, promise):
    if reason := _namespace.reason_against():
        pytest.skip(reason)
    command = [sys.executable, "-m", f"campaigns.{name}", "--count", str(count), "--seed", "7"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=Path(__file__).parents[2])
    assert run.returncode == 0 and promise in run.stdout, run.stdout + run.stderr
