"""What is learnt: SAD and BPR, their verbs and their files."""

from sadrec._record import CheckpointError
from sadrec.models.base import ModelFileError, NotFittedError
from sadrec.models.sad import BPR, SAD
from sadrec.training.loop import DivergedError

__all__ = ["BPR", "SAD", "CheckpointError", "DivergedError", "ModelFileError", "NotFittedError"]
