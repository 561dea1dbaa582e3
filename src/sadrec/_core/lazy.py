"""Names of a package that are imported when they are first used: Numba, SciPy and polars take a second."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package; ``homes`` lists by module the names that it offers, between blanks.

    A module is named from within the package: ``"plots"``, or ``".training.settings"`` for one of its neighbour.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{home[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
