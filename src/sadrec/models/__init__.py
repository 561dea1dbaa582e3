"""The models SAD and BPR, their verbs and their files."""

from typing import TYPE_CHECKING

from sadrec._core.lazy import lazily

if TYPE_CHECKING:
    from sadrec._core.record import CheckpointError
    from sadrec.models.base import Estimator, ModelFileError, NotFittedError, documented
    from sadrec.models.export import ExportPart, ExportWork, Lists, Written, read_manifest
    from sadrec.models.files import load_model, pack_ids, pack_seen, refusing, unpack_ids, unpack_seen
    from sadrec.models.fitting import settings_for
    from sadrec.models.newcomers import known_features, with_rows
    from sadrec.models.sad import BPR, SAD
    from sadrec.training.checkpoint import checkpoints_in
    from sadrec.training.loop import DivergedError
    from sadrec.training.settings import TrainingSettings

__all__ = ["BPR", "SAD", "CheckpointError", "DivergedError", "ModelFileError", "NotFittedError"]

if not TYPE_CHECKING:
    __getattr__ = lazily(__name__, __file__)
