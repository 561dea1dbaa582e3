"""Names of a package that are imported when they are first used: Numba, SciPy and polars take a second."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazily(package: str, file: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package: it imports what its file imports for type checkers alone."""
    blocks = [entry for entry in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(entry, ast.If)]
    checked = next(block.body for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING")
    imports = [entry for entry in checked if isinstance(entry, ast.ImportFrom) and entry.module]
    homes = {alias.name: entry.module for entry in imports for alias in entry.names}

    def get(name: str) -> Any:
        module, path = homes.get(name), f"{package}.{name}"
        if module is not None:
            value = getattr(import_module(module), name)
        elif path in homes.values():
            value = import_module(path)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get
