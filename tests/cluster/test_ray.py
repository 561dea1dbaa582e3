"""A real cluster of three raylets, in a network namespace of its own."""

from tests.cluster.namespace import inside


def test_fits_on_a_cluster_have_the_bits_of_one_machine():
    result = inside("scenes:same_bits", 3)
    assert len(result) == 4 and all(result.values()), result


def test_a_worker_and_nodes_are_killed_and_the_bits_stay(tmp_path):
    result = inside("scenes:kills", 3, str(tmp_path / "checkpoint"))
    told = result.pop("told")
    assert len(result) == 3 and all(result.values()), (result, told)


def test_the_program_is_killed_and_run_again_with_fewer_workers(tmp_path):
    result = inside("scenes:resumed", 2, str(tmp_path / "checkpoint"))
    assert result["same"] and result["history"] == 4, result
    assert result["epochs"] and result["epochs"][0] > 2, result


def test_workers_read_files_and_keep_the_users_and_the_bits_are_those_of_one_machine(tmp_path):
    result = inside("files:fits", 2, str(tmp_path))
    said = result.pop("said")
    assert "the users of this model are with the workers" in said and "save('folder/') or collect()" in said
    assert len(result) == 10 and all(result.values()), result


def test_workers_that_read_files_are_killed_and_the_bits_stay(tmp_path):
    result = inside("files:kills", 2, str(tmp_path))
    told, said = result.pop("told"), result.pop("said")
    assert "what was learnt is gone with a worker" in said
    assert len(result) == 3 and all(result.values()), (result, told)
