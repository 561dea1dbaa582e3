"""The way back: the factors of the last whole epoch, kept out of memory."""

import tempfile
from contextlib import ExitStack

from sadrec.training.factors import Factors


class Fallback:
    """A copy of the factors to return to, in a nameless temporary file that vanishes with the process.

    In memory it would double what the parameters take. Where nothing can be written it is held in memory after all.

    Parameters
    ----------
    factors
        What to keep first.
    """

    def __init__(self, factors: Factors):
        self._copy: Factors | None = None
        with ExitStack() as stack:
            try:
                self._file = stack.enter_context(tempfile.TemporaryFile(prefix="sadrec-"))
            except OSError:
                self._copy = factors.copy()
            self.keep(factors)
            self.close = stack.pop_all().close

    def keep(self, factors: Factors) -> None:
        """Replace what is kept."""
        if self._copy is not None:
            self._copy.assign(factors)
            return
        try:
            self._file.seek(0)
            for array in factors.arrays:
                self._file.write(array.data.cast("B"))
            self._file.flush()
        except OSError:
            self._copy = factors.copy()

    def restore(self, factors: Factors) -> None:
        """Put what is kept into ``factors``, in place."""
        if self._copy is not None:
            factors.assign(self._copy)
            return
        self._file.seek(0)
        for array in factors.arrays:
            self._file.readinto(array.data.cast("B"))
