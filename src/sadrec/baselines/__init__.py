"""Baselines that need nothing but sadrec: popularity and EASE."""

from sadrec.baselines.ease import EASE
from sadrec.baselines.popularity import Popularity
from sadrec.baselines.scored import ScoreModel

__all__ = ["EASE", "Popularity", "ScoreModel"]
