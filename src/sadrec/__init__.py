"""sadrec: recommendations when taste does not run in a straight line."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sadrec.data import Comparisons, Interactions, Items
    from sadrec.models import BPR, SAD
    from sadrec.posterior import GibbsSAD

__version__ = "0.1.0"

__all__ = ["BPR", "SAD", "Comparisons", "GibbsSAD", "Interactions", "Items", "__version__"]

_HOMES = {
    "BPR": "models",
    "SAD": "models",
    "GibbsSAD": "posterior",
    "Comparisons": "data",
    "Interactions": "data",
    "Items": "data",
}


if not TYPE_CHECKING:  # or a checker would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used: Numba, SciPy and polars take a second."""
        if name in _HOMES:
            value = getattr(import_module(f"sadrec.{_HOMES[name]}"), name)
        elif name in _HOMES.values():
            value = import_module(f"sadrec.{name}")
        else:
            raise AttributeError(f"module 'sadrec' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
