"""What people did: interactions, comparisons, one reader, splits, named data sets, simulation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sadrec.data.comparisons import Comparisons, as_comparisons
    from sadrec.data.datasets import load, load_split
    from sadrec.data.ids import Ids, UnknownIdError, as_id_array
    from sadrec.data.interactions import Interactions, as_interactions
    from sadrec.data.simulation import Simulation, simulate

__all__ = [
    "Comparisons",
    "DataWarning",
    "Ids",
    "Interactions",
    "Simulation",
    "UnknownIdError",
    "as_comparisons",
    "as_id_array",
    "as_interactions",
    "load",
    "load_split",
    "simulate",
]

_PLACES = {
    "Comparisons": "comparisons",
    "as_comparisons": "comparisons",
    "load": "datasets",
    "load_split": "datasets",
    "Ids": "ids",
    "UnknownIdError": "ids",
    "as_id_array": "ids",
    "Interactions": "interactions",
    "as_interactions": "interactions",
    "Simulation": "simulation",
    "simulate": "simulation",
}
"""The module of each name: imported when it is first asked for, because polars and SciPy take long to load."""


class DataWarning(UserWarning):
    """Something in the data was put right, and how."""


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
