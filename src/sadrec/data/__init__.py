"""What people did: interactions, comparisons, readers, splits, named data sets, simulation."""

from sadrec.data._warning import DataWarning
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
