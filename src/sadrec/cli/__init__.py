"""The same verbs on the command line."""

from sadrec.cli.main import main

__all__ = ["main"]
