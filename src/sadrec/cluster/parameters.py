"""Rows of parameters as workers send and keep them."""

from typing import NamedTuple

from sadrec._types import Floats


class Rows(NamedTuple):
    """Rows of parameters on their way: of users, of items, or of both."""

    users: Floats | None
    items: Floats
    bias: Floats | None
    l1_weights: Floats | None

    @property
    def nbytes(self) -> int:
        """How many bytes of numbers there are."""
        return sum(array.nbytes for array in self if array is not None)
