"""Factors that are kept but seldom needed, out of memory."""

import tempfile
import weakref
from contextlib import suppress
from typing import Any

from sadrec.training.factors import Factors


class Stored:
    """A copy of factors in a nameless temporary file, which vanishes with the process.

    In memory it would double what the parameters take. Where nothing can be written it is held in memory after all.
    """

    def __init__(self, factors: Factors):
        self._copy: Factors | None = None
        try:
            self._file = tempfile.TemporaryFile(prefix="sadrec-")  # noqa: SIM115
            weakref.finalize(self, _close, self._file)  # with the object, and without Python's warning that it was open
            for array in factors.arrays:
                self._file.write(array.data.cast("B"))
            self._file.flush()
        except OSError:
            self._copy = factors.copy()

    def put_into(self, factors: Factors) -> Factors:
        """Write the copy into factors of the same shapes, in place, and return them."""
        if self._copy is not None:
            factors.assign(self._copy)
            return factors
        self._file.seek(0)
        for array in factors.arrays:
            self._file.readinto(array.data.cast("B"))
        return factors


def _close(file: Any) -> None:
    """Close a file that is not needed any more, whatever could not be written to it."""
    with suppress(OSError):
        file.close()
