"""Learn comparisons with factors and without, and take what predicts comparisons better that it has not seen.

Without factors there are scores, what two items that met have beside them, and the scores of single users. Where people
differ item by item and not along a few directions, as the seasons of a league do, that predicts better; and it is all
that a few comparisons can tell.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._memory import give_back
from sadrec.features.ridge import on_one_thread
from sadrec.training.given import Pairs
from sadrec.training.layout import Counts, count
from sadrec.training.leave_one_out import left_out_losses
from sadrec.training.variational import Variational

EVIDENCE = 10.0
"""Nats of left-out log likelihood that decide; fewer may be an error of the approximation."""
ERRORS = 3.0
"""Standard errors of their sum over pairs of items that they are at least; fewer may be chance.

Without either, one user has scores, which are easier to read; and several users have factors, which visitors and lists
are made of.
"""


class Learners:
    """One learner with factors and one without, which make their sweeps together.

    The arguments are those of :class:`~sadrec.training.variational.Variational`, with comparisons that are not counted
    yet. Features predict factors: with features there is no learner without factors.
    """

    def __init__(
        self, pairs: Pairs, users: int, items: int, factors: int, seed: int, rivals: bool = True, **options: Any
    ) -> None:
        counts = count(pairs, items)
        lengths = [factors]
        featured = any(side is not None for side in options.get("features", ()))
        if factors and not featured and (users > 1 or rivals):
            lengths.append(0)
        self.learners = [Variational(counts, users, items, length, seed, rivals, **options) for length in lengths]
        self._one_user = users == 1
        give_back()  # what counting took

    @property
    def sweep(self) -> int:
        """The number of sweeps made."""
        return self.learners[0].sweep

    @property
    def counts(self) -> Counts:
        """The comparisons, counted; before :meth:`~sadrec.training.variational.Variational.finish`."""
        rows = self.learners[0].rows
        return Counts(rows.user, rows.item, rows.rival, rows.weight, rows.wins)

    @property
    def last_stage(self) -> int:
        """The sweep after which no part of the model comes or goes."""
        return self.learners[0].last_stage

    @property
    def total(self) -> float:
        """The number of comparisons, by weight."""
        return self.learners[0].total

    def advance(self) -> float:
        """Make a sweep of both; return the mean log likelihood of the comparisons by the first."""
        with on_one_thread():  # else what NumPy adds up depends on how many others do so at the time
            likelihood, *_ = [learner.advance() for learner in self.learners]
        give_back()
        return likelihood

    def chosen(self) -> tuple[Variational, list[float]]:
        """Return the learner to take, and the left-out log loss of each: the one with factors first."""
        losses = [left_out_losses(learner) for learner in self.learners]
        gain = losses[-1] - losses[0]
        needed = max(EVIDENCE, ERRORS * float(np.sqrt(len(gain)) * gain.std()))
        chosen = self.learners[0 if gain.sum() > (needed if self._one_user else -needed) else -1]
        return chosen, [float(loss.sum()) / self.total for loss in losses]

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what the next sweep depends on: plain values and arrays."""
        states = [learner.state() for learner in self.learners]
        arrays = {f"{number}_{name}": array for number, (_, of) in enumerate(states) for name, array in of.items()}
        return {"sweep": self.sweep, "learners": [values for values, _ in states]}, arrays

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go to a state that :meth:`state` gave; see :meth:`Variational.restore`."""
        if len(values["learners"]) != len(self.learners):
            raise ValueError(f"it has {len(values['learners'])} learners, and this fit has {len(self.learners)}")
        steps = []
        for number, (learner, own) in enumerate(zip(self.learners, values["learners"], strict=True)):
            if own["sweep"] != values["sweep"]:
                raise ValueError(f"learner {number} is at sweep {own['sweep']}, and not at {values['sweep']}")
            start = f"{number}_"
            of_learner = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
            steps.append(learner.checked(own, of_learner))
        for step in steps:  # all of them, or none: an older state is used where one is refused
            step()
