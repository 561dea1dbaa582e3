"""The chance that the held-out item is among the first, when equals are put in random order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec.evaluation.metrics.pairs import Floats


def expected_hit(
    ahead: NDArray[Any], equal: NDArray[Any], sampled: NDArray[Any], cut: int = 20, out_of: int = 100
) -> Floats:
    r"""Expected hit of the held-out item among ``sampled`` others: fewer than ``cut`` of ``out_of`` ahead of it.

    .. math:: \mathrm{clip}\left(\frac{c - \mathrm{ahead}}{\mathrm{equal} + 1}, 0, 1\right), \qquad
        c = \mathrm{cut} \cdot \mathrm{sampled} / \mathrm{out\_of}

    Among e equal items and the held-out one, random order puts each of 0..e equals before it with the same chance. A
    model that says nothing therefore scores 20/101 = 19.8 %, not 0 and not 100 %. A user with fewer than ``out_of``
    items not met has the cut scaled down in proportion, and no value (NaN) when there is none at all.

    Examples
    --------
    >>> import numpy as np
    >>> expected_hit(np.array([19, 20, 0]), np.array([0, 0, 100]), np.array([100, 100, 100])).round(3)
    array([1.   , 0.   , 0.198])
    """
    sampled = np.asarray(sampled, dtype=np.float64)
    room = cut * sampled / out_of - ahead
    hit = np.clip(room / (np.asarray(equal) + 1.0), 0.0, 1.0)
    return np.where(sampled > 0, hit, np.nan)
