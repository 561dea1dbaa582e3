"""Names for the arrays that several folders hand to each other."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
"""Parameters and scores, in single precision."""
Doubles = NDArray[np.float64]
"""Measures, gradients and everything that is summed up, in double precision."""
Positions = NDArray[np.int64]
"""Rows of users or items."""
