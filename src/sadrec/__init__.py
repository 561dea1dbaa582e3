"""sadrec: recommendations when taste does not run in a straight line."""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily

if TYPE_CHECKING:
    from sadrec.data import Comparisons, Interactions, Items
    from sadrec.models import BPR, SAD
    from sadrec.posterior import GibbsSAD

__version__ = "0.1.0"

__all__ = ["BPR", "SAD", "Comparisons", "GibbsSAD", "Interactions", "Items", "__version__"]

if not TYPE_CHECKING:  # or a checker would take every misspelt name for one that is there
    __getattr__ = lazily(__name__, __file__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
