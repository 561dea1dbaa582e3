"""A real cluster of three raylets, in a network namespace of its own."""

from tests.cluster.namespace import inside


def test_fits_on_a_cluster_have_the_bits_of_one_machine():
    result = inside("scenes:same_bits", 3)
    assert len(result) == 3 and all(result.values()), result


def test_a_worker_and_nodes_are_killed_and_the_bits_stay(tmp_path):
    result = inside("scenes:kills", 3, str(tmp_path / "checkpoint"))
    told = result.pop("told")
    assert len(result) == 3 and all(result.values()), (result, told)


def test_the_program_is_killed_and_run_again_with_fewer_workers(tmp_path):
    result = inside("scenes:resumed", 2, str(tmp_path / "checkpoint"))
    assert result["same"] and result["history"] == 4, result
    assert result["epochs"] and result["epochs"][0] > 2, result
