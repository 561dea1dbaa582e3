"""Build RankFM from its source archive, which does not build as it is.

RankFM 0.2.5 ships a C file made by an old Cython that newer Pythons refuse, and without the declaration file that
would be needed to make the C file again. This deletes the one, adds the other and compiles.
"""

import hashlib
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

from studies.baselines.errors import BaselineError

REQUIREMENT = "rankfm==0.2.5"
ARCHIVE = "4f9b1257aa05f4b5e6e682fb26f281bb0dbe32b81da1d8910873b90b1815063f"
"""SHA-256 of the archive."""
DECLARATION = """\
cdef extern from "mt19937ar/mt19937ar.h" nogil:
    void init_genrand(unsigned long seed)
    unsigned long genrand_int32()
"""
"""What RankFM uses of the Mersenne twister in its own folder."""


def build(python: Path, folder: Path, step: Callable[[list[str | Path]], None]) -> None:
    """Fetch, mend, compile and install RankFM.

    Parameters
    ----------
    python
        The Python to install it for, which has its requirements already.
    folder
        Where to work.
    step
        Runs a command, or raises.
    """
    work = folder / "rankfm-source"
    shutil.rmtree(work, ignore_errors=True)
    pip: list[str | Path] = [python, "-I", "-m", "pip", "--no-input"]
    from_source = ["--no-deps", "--no-build-isolation", "--no-binary", "rankfm"]
    step([*pip, "download", *from_source, "--dest", work, REQUIREMENT])
    archive = next(work.glob("rankfm-*.tar.gz"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != ARCHIVE:
        raise BaselineError(f"{archive.name} is not the archive we know: its SHA-256 is {digest}, not {ARCHIVE}")
    with tarfile.open(archive) as file:
        file.extractall(work, filter="data")
    source = work / archive.name.removesuffix(".tar.gz")
    (source / "rankfm" / "_rankfm.c").unlink()
    (source / "rankfm" / "mt19937ar.pxd").write_text(DECLARATION, encoding="utf-8")
    if shutil.which("cc") is None and shutil.which("gcc") is None and shutil.which("cl") is None:
        raise BaselineError("fm is compiled on this machine and there is no C compiler: install one, e.g. gcc")
    step([*pip, "install", "--no-deps", "--no-build-isolation", "--no-cache-dir", source])
    shutil.rmtree(work)
