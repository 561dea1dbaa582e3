"""A locked virtual environment for each group of baselines, and for each toolkit, under the cache folder of sadrec.

The libraries of the baselines do not fit into one environment. So each group gets its own, made the first time it is
needed from a list of exact versions with their hashes (the folder ``requirements``). An environment is made under
another name and renamed when it works, so there is either all of it or nothing. ``uv`` makes it if it is installed,
and otherwise ``venv`` and ``pip``; both keep what they have fetched, so building again after an interruption is quick.
"""

import hashlib
import logging
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sadrec.data.datasets.download import cache_folder
from studies.baselines import rankfm_source
from studies.baselines.catalogue import BASELINES, find
from studies.baselines.errors import BaselineError, RegistryUnreachableError
from studies.baselines.processes import run_logged, tail

if TYPE_CHECKING:
    from filelock import FileLock

logger = logging.getLogger(__name__)

Report = Callable[[str], None]
"""Called with what is done next."""
Command = list[str | Path]

REQUIREMENTS = Path(__file__).parent / "requirements"
_THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_NO_CONNECTION = re.compile(
    "error sending request|dns error|network was disabled|connection broken by|Max retries exceeded"
    "|Failed to establish a new connection|name resolution|Network is unreachable|timed out|from versions: none",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Environment:
    """A group of baselines that share a virtual environment.

    Attributes
    ----------
    name
        Also the name of its list of requirements.
    modules
        What must be importable in it.
    megabytes
        About how much room it takes.
    python
        The version of Python that its libraries run on.
    """

    name: str
    modules: tuple[str, ...]
    megabytes: int
    python: str = _THIS_PYTHON

    @property
    def requirements(self) -> Path:
        """The list of its packages, each with an exact version and hashes."""
        return REQUIREMENTS / f"{self.name}.txt"

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines that live in it; its own for that of a toolkit."""
        return tuple(spec.name for spec in BASELINES.values() if spec.environment == self.name) or (self.name,)

    @property
    def folder(self) -> Path:
        """Where it is; the name changes when what it contains changes."""
        content = self.requirements.read_text(encoding="utf-8")
        if self.name == "rankfm":
            content += rankfm_source.ARCHIVE + rankfm_source.DECLARATION
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        return _root() / f"{self.name}-py{self.python}-{digest}"


ENVIRONMENTS: Mapping[str, Environment] = {
    "light": Environment("light", ("surprise", "cornac.models", "implicit"), 480),
    "lightfm": Environment("lightfm", ("lightfm",), 330),
    "rankfm": Environment("rankfm", ("rankfm.rankfm",), 210),
    "recommenders": Environment("recommenders", ("recommenders.models.ncf.ncf_singlenode",), 1700, "3.11"),
}
"""The environments of baselines by name."""

TOOLKITS: Mapping[str, Environment] = {
    "cornac": Environment("cornac", ("cornac.models", "numba", "pytest"), 750),
    "rectools": Environment("rectools", ("rectools.models", "numba", "pytest"), 550, "3.11"),
    "lenskit2025": Environment("lenskit2025", ("lenskit.pipeline", "numba", "pytest"), 5600, "3.13"),
    "lenskit2026": Environment("lenskit2026", ("lenskit.pipeline", "numba", "pytest"), 5600, "3.13"),
}
"""The environments in which sadrec is tested inside other toolkits (tests/integrations), by name."""

STUDIES: Mapping[str, Environment] = {
    "neural": Environment("neural", ("numpy", "torch"), 900, "3.11"),
    "arena": Environment("arena", ("choix", "evalica", "arena_rank", "leaderbot"), 1300, "3.11"),
}
"""The environments in which studies run programs of their own, by name."""


def environment_of(name: str) -> Environment | None:
    """Find the environment of a baseline, or the environment with this name; ``None`` for baselines that need none.

    Raises
    ------
    ValueError
        When there is no baseline and no environment of this name.
    """
    for known in (ENVIRONMENTS, TOOLKITS, STUDIES):
        if name in known:
            return known[name]
    wanted = find(name).environment
    return None if wanted is None else ENVIRONMENTS[wanted]


def installed(environment: Environment) -> Path | None:
    """Return the Python of an environment if it is there and up to date, else ``None``."""
    python = _python(environment.folder)
    return python if python.exists() else None


def install(name: str, report: Report = logger.info) -> Path:
    """Make sure that a baseline can run: build its environment unless it is there.

    Several processes may ask at once: one builds, the others wait.

    Parameters
    ----------
    name
        A baseline, or an environment.
    report
        Is called with every step.

    Returns
    -------
    pathlib.Path
        The Python that has the baseline's library.

    Raises
    ------
    RegistryUnreachableError
        When packages could not be fetched for want of a connection.
    BaselineError
        When the environment could not be built for another reason.
    """
    environment = environment_of(name)
    if environment is None:
        return Path(sys.executable)
    with _locked(environment):
        if installed(environment) is None:
            # what is there is of another list, or was left by a process that was killed
            for stale in _root().glob(f"{environment.name}-*/"):
                shutil.rmtree(stale)
            building = Path(tempfile.mkdtemp(prefix=f"{environment.name}-unfinished-", dir=_root()))
            try:
                _build(environment, building, report)
                (building / "made").rename(environment.folder)
            finally:
                shutil.rmtree(building, ignore_errors=True)
    return _python(environment.folder)


def remove(name: str) -> bool:
    """Delete the environment of a baseline, complete or not, and tell whether there was one."""
    environment = environment_of(name)
    if environment is None:
        return False
    with _locked(environment):
        folders = list(_root().glob(f"{environment.name}-*/"))
        for folder in folders:
            shutil.rmtree(folder)
    return bool(folders)


def _build(environment: Environment, folder: Path, report: Report) -> None:
    log, uv, python = folder / "build.log", find_uv(), _python(folder / "made")

    def step(command: Command) -> None:
        if code := run_logged(command, log):
            raise _failure(environment, f"{Path(command[0]).name} ended with {code}; its last lines:\n{tail(log)}", log)

    report("creating the environment")
    if uv is not None:
        step([uv, "venv", "--relocatable", "--python", environment.python, folder / "made"])
        pip: Command = [uv, "pip", "install", "--python", python]
    else:
        step([_base_python(environment), "-I", "-m", "venv", folder / "made"])
        pip = [python, "-I", "-m", "pip", "install", "--no-input"]
    report("installing the packages")
    step([*pip, "--no-deps", "--require-hashes", "-r", environment.requirements])
    if environment.name == "rankfm":
        report("building rankfm from its source")
        rankfm_source.build(python, folder, step)
    report("checking that it works")
    step([python, "-I", "-c", "import " + ", ".join(environment.modules)])


def _failure(environment: Environment, said: str, log: Path) -> BaselineError:
    message = f"the environment {environment.name!r} (for {' '.join(environment.baselines)}) could not be built: {said}"
    if not _NO_CONNECTION.search(log.read_text(errors="replace")):
        return BaselineError(message)
    return RegistryUnreachableError(
        f"{message}\nThe package registry could not be reached: check the connection (and the settings of uv or pip) "
        f"and run `python -m studies.baselines install {environment.baselines[0]}` again"
    )


def find_uv() -> Path | None:
    """Return the program uv, on the PATH or beside this Python."""
    program = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    return None if program is None else Path(program)


def _base_python(environment: Environment) -> str:
    """Find a Python to make the environment with, without uv, which would fetch one."""
    if environment.python == _THIS_PYTHON:
        return sys.executable
    path = shutil.which(f"python{environment.python}")
    if path is None:
        raise BaselineError(
            f"{' and '.join(environment.baselines)} need Python {environment.python}; this is {_THIS_PYTHON} and no "
            "such Python is on the PATH: install it, or uv (pip install uv), or leave these baselines out"
        )
    return path


def _root() -> Path:
    return cache_folder().resolve() / "baselines"


def _locked(environment: Environment) -> "FileLock":
    try:
        from filelock import FileLock
    except ImportError as error:
        raise BaselineError("environments of baselines need filelock: pip install filelock") from error

    _root().mkdir(parents=True, exist_ok=True)
    return FileLock(_root() / f"{environment.name}.lock")


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
