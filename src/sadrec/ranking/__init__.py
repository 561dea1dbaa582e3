"""What is asked: pure functions of parameters."""

from sadrec.ranking.parameters import Parameters

__all__ = ["Parameters"]
