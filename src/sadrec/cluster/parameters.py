"""Rows of parameters, as workers send and store them."""

from typing import NamedTuple

from sadrec._core.types import Floats


class ParameterRows(NamedTuple):
    """Rows of parameters in transit: of users, of items, or of both."""

    users: Floats | None
    items: Floats
    bias: Floats | None
    l1_weights: Floats | None

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return sum(array.nbytes for array in self if array is not None)
