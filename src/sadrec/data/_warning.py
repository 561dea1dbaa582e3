"""The one kind of warning this folder gives."""


class DataWarning(UserWarning):
    """Something in the data was put right, and how."""
