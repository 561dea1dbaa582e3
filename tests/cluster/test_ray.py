"""A real cluster of three raylets, in a network namespace of its own: fits, and recommendations for everybody."""

import pytest

from tests.cluster.namespace import inside


@pytest.fixture(scope="module")
def results(tmp_path_factory, once_for_all_workers):
    folder = tmp_path_factory.mktemp("ray")
    return once_for_all_workers("ray", lambda: inside("scenes:one_after_another", 3, str(folder)))


@pytest.fixture
def played(results):
    """What a scene has come to, unless it failed."""

    def result(name):
        found = dict(results[name])
        assert "error" not in found, found["error"]
        return found

    return result


def test_fits_on_a_cluster_have_the_bits_of_one_machine(played):
    result = played("bits")
    assert len(result) == 4 and all(result.values()), result


def test_a_worker_and_nodes_are_killed_and_the_bits_stay(played):
    result = played("killed")
    told = result.pop("told")
    assert len(result) == 3 and all(result.values()), (result, told)


def test_the_program_is_killed_and_run_again_with_fewer_workers(played):
    result = played("resumed")
    assert result["same"] and result["history"] == 4, result
    assert result["epochs"] and result["epochs"][0] > 2, result


def test_workers_read_files_and_keep_the_users_and_the_bits_are_those_of_one_machine(played):
    result = played("files")
    said = result.pop("said")
    assert (
        "the users of this model are with the workers" in said
        and "save('folder/') first, or fit with engine=Ray(collect=True)" in said
    )
    assert len(result) == 10 and all(result.values()), result


def test_workers_that_read_files_are_killed_and_the_bits_stay(played):
    result = played("killed files")
    told, said = result.pop("told"), result.pop("said")
    assert "what was learnt is gone with a worker" in said
    assert len(result) == 3 and all(result.values()), (result, told)


def test_the_lists_of_everybody_are_those_of_one_machine(played):
    result = played("lists")
    told = result.pop("told")
    assert len(result) == 6 and all(result.values()), result
    assert "gone.sad' is not there on" in told and "in folders that all nodes share" in told


def test_no_row_of_the_lists_is_lost_or_doubled_when_workers_are_killed(played):
    result = played("killed lists")
    assert result["same"] and result["killed"] == 3, result
    assert 1 <= len(result["told"]) <= 3 and all("was lost with its worker" in text for text in result["told"]), result


def test_the_program_that_writes_lists_is_killed_and_run_again_with_fewer_workers(played):
    result = played("resumed lists")
    assert result["same"] and result["before"] >= 3 and not result["finished"], result
