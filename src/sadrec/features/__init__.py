"""What is known of items and users beside what happened: tables of features, and what they predict."""

from sadrec.features.encoder import Encoder
from sadrec.features.table import Features

__all__ = ["Encoder", "Features"]
