"""Recommendations for everybody on a real cluster, in a network namespace of its own."""

from tests.cluster.namespace import inside


def test_the_files_are_those_of_one_machine(tmp_path):
    result = inside("lists:same_rows", 2, str(tmp_path))
    told = result.pop("told")
    assert len(result) == 6 and all(result.values()), result
    assert "gone.sad' is not there on" in told and "in folders that all nodes share" in told


def test_no_row_is_lost_or_doubled_when_workers_are_killed(tmp_path):
    result = inside("lists:kills", 2, str(tmp_path))
    assert result["same"] and result["killed"] == 3, result
    assert 1 <= len(result["told"]) <= 3 and all("was lost with its worker" in text for text in result["told"]), result


def test_the_program_is_killed_and_run_again_with_fewer_workers(tmp_path):
    result = inside("lists:again", 2, str(tmp_path))
    assert result["same"] and result["before"] >= 3 and not result["finished"], result
