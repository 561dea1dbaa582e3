"""What people did: interactions, comparisons, readers, splits, named data sets, simulation."""

from sadrec.data._warning import DataWarning
from sadrec.data.comparisons import Comparisons, as_comparisons
from sadrec.data.ids import Ids, UnknownIdError, as_id_array
from sadrec.data.interactions import Interactions, as_interactions

__all__ = [
    "Comparisons",
    "DataWarning",
    "Ids",
    "Interactions",
    "UnknownIdError",
    "as_comparisons",
    "as_id_array",
    "as_interactions",
]
