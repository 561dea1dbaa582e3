"""The Gini index of what is shown."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def gini(exposure: NDArray[Any]) -> float:
    r"""Gini index of how often items are recommended: 0 when all alike, towards 1 when few items take all places.

    .. math:: \frac{\sum_{i=1}^m (2 i - m - 1) e_{(i)}}{m \sum_i e_i}, \qquad e_{(1)} \le \dots \le e_{(m)}

    Source: Fleder and Hosanagar, Management Science 55(5), 2009.

    Parameters
    ----------
    exposure
        How often each item of the catalogue is recommended.

    Examples
    --------
    >>> gini(np.array([2, 2, 2])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    total = float(exposure.sum())
    if total == 0:
        return float("nan")
    m = len(exposure)
    return float((2 * np.arange(1, m + 1) - m - 1) @ np.sort(exposure) / (m * total))
