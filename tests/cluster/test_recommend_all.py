"""Recommendations for everybody on a real cluster, in a network namespace of its own."""

import pytest

from tests.cluster.namespace import inside


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return inside("lists:one_after_another", 2, str(tmp_path_factory.mktemp("lists")))


def test_the_files_are_those_of_one_machine(results):
    result = dict(results["same_rows"])
    told = result.pop("told")
    assert len(result) == 6 and all(result.values()), result
    assert "gone.sad' is not there on" in told and "in folders that all nodes share" in told


def test_no_row_is_lost_or_doubled_when_workers_are_killed(results):
    result = results["kills"]
    assert result["same"] and result["killed"] == 3, result
    assert 1 <= len(result["told"]) <= 3 and all("was lost with its worker" in text for text in result["told"]), result


def test_the_program_is_killed_and_run_again_with_fewer_workers(results):
    result = results["again"]
    assert result["same"] and result["before"] >= 3 and not result["finished"], result
