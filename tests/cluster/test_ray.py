"""A real cluster of three raylets, in a network namespace of its own."""

from tests.cluster.namespace import inside


def test_fits_on_a_cluster_have_the_bits_of_one_machine():
    result = inside("scenes:same_bits", 3)
    assert len(result) == 3 and all(result.values()), result
