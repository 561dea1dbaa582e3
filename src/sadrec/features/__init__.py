"""Features of items and users: tables, their encoding, and the regression of factors on them."""

from sadrec.features.encoder import Encoder, Listed, Scaled
from sadrec.features.predictor import Predictor
from sadrec.features.table import Features, id_column, read_table

__all__ = ["Encoder", "Features"]
