"""Catalogue coverage."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def coverage(exposure: NDArray[Any]) -> float:
    r"""Share of the catalogue that is recommended to at least one user.

    .. math:: |\cup_u R_u| / m

    Source: Ge, Delgado-Battenfeld and Jannach, RecSys 2010.

    Parameters
    ----------
    exposure
        How often each item of the catalogue is recommended.

    Examples
    --------
    >>> coverage(np.array([3, 0, 1, 0]))
    0.5
    """
    return float(np.count_nonzero(exposure) / max(1, len(exposure)))
