"""What people did: interactions, comparisons, one reader, splits, named data sets, simulation."""

from typing import TYPE_CHECKING

from sadrec._lazy import lazily

if TYPE_CHECKING:
    from sadrec.data.comparisons import Comparisons, as_comparisons, as_feedback
    from sadrec.data.datasets import load, load_split
    from sadrec.data.ids import Ids, UnknownIdError, as_id_array
    from sadrec.data.interactions import Interactions, as_interactions
    from sadrec.data.items import Items
    from sadrec.data.simulation import Simulation, simulate

__all__ = [
    "Comparisons",
    "DataWarning",
    "Ids",
    "Interactions",
    "Items",
    "Simulation",
    "UnknownIdError",
    "as_comparisons",
    "as_feedback",
    "as_id_array",
    "as_interactions",
    "load",
    "load_split",
    "simulate",
]

if not TYPE_CHECKING:
    __getattr__ = lazily(
        __name__,
        {
            "comparisons": "Comparisons as_comparisons as_feedback",
            "datasets": "load load_split",
            "ids": "Ids UnknownIdError as_id_array",
            "interactions": "Interactions as_interactions",
            "items": "Items",
            "simulation": "Simulation simulate",
        },
    )


class DataWarning(UserWarning):
    """Something in the data was put right, and how."""
