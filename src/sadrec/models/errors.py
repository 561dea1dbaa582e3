"""What can go wrong with a model, apart from bad values."""

from sadrec._files import FileFormatError


class NotFittedError(ValueError, AttributeError):
    """A question was asked before ``fit``."""


class ModelFileError(FileFormatError):
    """A model file is damaged, cut short, of another kind or of a newer version."""
