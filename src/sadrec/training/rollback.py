"""The rollback snapshot: factors and state of the last whole epoch, kept out of memory."""

import tempfile
from contextlib import ExitStack

from sadrec.training.checkpoint import State
from sadrec.training.factors import Factors


class Rollback:
    """Factors and state to return to, in a nameless temporary file that vanishes with the process.

    The file has two places, which are written to in turn. What is written last becomes the snapshot by a single
    assignment, when all of it is there: whatever interrupts the writing, the snapshot before is whole and stays.

    In memory it would double what the parameters take. Where nothing can be written it is held in memory after all.
    """

    def __init__(self, factors: Factors, state: State):
        self._size = sum(array.nbytes for array in factors.arrays)
        self._snapshot: tuple[int | Factors, State] = (1, state)  # a place in the file, or a copy
        with ExitStack() as stack:
            try:
                self._file = stack.enter_context(tempfile.TemporaryFile(prefix="sadrec-"))
            except OSError:
                self._snapshot = (factors.copy(), state)
            self.keep(factors, state)
            self.close = stack.pop_all().close

    @property
    def state(self) -> State:
        """The state of the snapshot."""
        return self._snapshot[1]

    @state.setter
    def state(self, state: State) -> None:
        self._snapshot = (self._snapshot[0], state)

    def keep(self, factors: Factors, state: State) -> None:
        """Replace the snapshot."""
        place = self._snapshot[0]
        if isinstance(place, int):
            try:
                self._file.seek((1 - place) * self._size)
                for array in factors.arrays:
                    self._file.write(array.data.cast("B"))
                self._file.flush()
                self._snapshot = (1 - place, state)
                return
            except OSError:
                pass
        self._snapshot = (factors.copy(), state)

    def restore(self, factors: Factors) -> State:
        """Put the snapshot into ``factors``, in place, and return its state."""
        place, state = self._snapshot
        if isinstance(place, Factors):
            factors.assign(place)
        else:
            self._file.seek(place * self._size)
            for array in factors.arrays:
                self._file.readinto(array.data.cast("B"))
        return state
