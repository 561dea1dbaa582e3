"""Whether tau differs from 1, asked in a way that has an answer."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.posterior.factors import aligned
from sadrec.posterior.questions import Sampled, check_level

Floats = NDArray[np.float64]

MOST_DRAWS = 1000
"""How many draws are aligned."""


class RivalQuestions(Sampled):
    """What an item does to its rivals."""

    def aligned_factors(self) -> tuple[Floats, Floats, Floats]:
        """Return draws of xi, eta and tau, (draws, rows, factors), that can be compared from draw to draw.

        Factors are matched to those of the last draw, and each is written in that of its equivalent forms in which most
        of tau is near 1. At most 1,000 draws; their preferences are those of the sampler. tau may fall below 0 here.
        """
        return self._aligned

    @cached_property
    def _aligned(self) -> tuple[Floats, Floats, Floats]:
        return aligned(self.drawn.at_most(MOST_DRAWS))

    def rival_differs(self, item: Any, by: float = 0.5, factor: int | None = None) -> Any:
        """Return the probability that tau of an item differs from 1 by more than ``by``.

        tau as the sampler draws it is not identified: every factor has many forms with the same preferences. Asked is
        the form in which most of tau is near 1 (see :meth:`aligned_factors`): a difference there is one that another
        form of the factor could only exchange for more of them. The probability that tau is exactly 1 is zero under a
        continuous prior, hence ``by``.

        Parameters
        ----------
        item
            An id, or a sequence of ids.
        by
            What counts as a difference.
        factor
            The number of a factor, in the order of :meth:`aligned_factors`; None asks whether tau differs in any.
        """
        if not isinstance(by, int | float) or isinstance(by, bool) or not by >= 0:
            raise ValueError(f"by must be a number, 0 or more, not {by!r}")
        rows = self.item_ids.positions(item)
        _, _, tau = self.aligned_factors()
        if factor is not None and (isinstance(factor, bool) or not 0 <= factor < tau.shape[2]):
            raise ValueError(f"factor must be one of 0..{tau.shape[2] - 1} or None, not {factor!r}")
        differs = np.abs(tau[:, np.atleast_1d(rows)] - 1) > by
        chosen = differs.any(axis=2) if factor is None else differs[:, :, factor]
        share = chosen.mean(axis=0)
        return float(share[0]) if np.ndim(rows) == 0 else share

    def rival_interval(self, item: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of intervals of tau of an item, one per aligned factor.

        Parameters
        ----------
        item
            An id, or a sequence of ids.
        level
            Probability content.
        """
        tail = (1 - check_level(level)) / 2
        _, _, tau = self.aligned_factors()
        low, high = np.quantile(tau[:, self.item_ids.positions(item)], [tail, 1 - tail], axis=0)
        return low, high
