"""sadrec: recommendations when taste does not run in a straight line."""

from sadrec.data import Comparisons, Interactions
from sadrec.models import BPR, SAD

__version__ = "0.1.0"

__all__ = ["BPR", "SAD", "Comparisons", "Interactions", "__version__"]
