"""Start a program: ``main(["svd", FOLDER])`` fits the baseline ``svd`` to what lies in FOLDER."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from .exchange import carry_out


def run(program: str, folder: Path) -> None:
    """Fit the program with this module name to the training file of ``folder``, and write its scores there."""
    module = importlib.import_module(f".{program}", __package__)
    carry_out(module.fit, folder)


def main(arguments: Sequence[str]) -> None:
    """Run one program as a process of its own, which ends when the process that started it ends."""
    program, folder = arguments
    if sys.platform == "linux":
        import ctypes
        import signal

        death_signal = 1
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    run(program, Path(folder))
