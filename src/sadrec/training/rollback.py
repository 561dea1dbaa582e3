"""The rollback snapshot: factors and state of the last whole epoch, kept out of memory."""

from sadrec.training.checkpoint import State
from sadrec.training.factors import Factors
from sadrec.training.stored import Stored


class Rollback:
    """Factors and state to return to.

    A new copy becomes the snapshot by a single assignment, when all of it is written: whatever interrupts the writing,
    the snapshot before is whole and stays.
    """

    def __init__(self, factors: Factors, state: State):
        self._snapshot = (Stored(factors), state)

    @property
    def state(self) -> State:
        """The state of the snapshot."""
        return self._snapshot[1]

    @state.setter
    def state(self, state: State) -> None:
        self._snapshot = (self._snapshot[0], state)

    def keep(self, factors: Factors, state: State) -> None:
        """Replace the snapshot."""
        self._snapshot = (Stored(factors), state)

    def restore(self, factors: Factors) -> State:
        """Put the snapshot into ``factors``, in place, and return its state."""
        stored, state = self._snapshot
        stored.put_into(factors)
        return state
