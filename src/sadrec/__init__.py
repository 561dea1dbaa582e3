"""sadrec: recommendations when taste does not run in a straight line."""

__version__ = "0.1.0"
