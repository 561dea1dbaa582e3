"""Types that several folders share: of arrays, and the methods of ranking."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
"""Parameters and scores, in single precision."""
Doubles = NDArray[np.float64]
"""Measures, gradients and everything that is summed up, in double precision."""
Positions = NDArray[np.int64]
"""Rows of users or items."""
Integers = NDArray[np.int32]
"""Rows of users or items where there are many of them."""
Mask = NDArray[np.bool_]
"""Which rows or entries are meant."""
Method = Literal["margin", "wins", "liked", "markov", "nash"]
SlateMethod = Literal["margin", "wins", "markov", "nash"]
METHODS: tuple[str, ...] = get_args(Method)
"""Methods of ranking: :func:`sadrec.ranking.rank.rank`."""
