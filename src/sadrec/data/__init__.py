"""Data: interactions, comparisons, one reader, splits, named data sets, simulation."""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily

if TYPE_CHECKING:
    from sadrec.data._assemble import Assembler, Chunk, arrange
    from sadrec.data._columns import holds_comparisons
    from sadrec.data.comparisons import Comparisons, as_comparisons, as_feedback, folds
    from sadrec.data.datasets import load
    from sadrec.data.ids import IdArray, Ids, UnknownIdError, as_id_array
    from sadrec.data.interactions import Interactions, as_interactions, with_weights
    from sadrec.data.items import Items
    from sadrec.data.parquet import ParquetFiles, RowRange, holds_interactions
    from sadrec.data.simulation import Simulation, simulate
    from sadrec.data.tables import Table

__all__ = [
    "Comparisons",
    "DataWarning",
    "Ids",
    "Interactions",
    "Items",
    "NothingLearnt",
    "Simulation",
    "UnknownIdError",
    "as_comparisons",
    "as_feedback",
    "as_id_array",
    "as_interactions",
    "load",
    "simulate",
]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, __file__)


class DataWarning(UserWarning):
    """A warning that something in the data was corrected, and how."""


class NothingLearnt(DataWarning):
    """A warning that nothing was learnt: no user has both an item and one that they did not touch."""
