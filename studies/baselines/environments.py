"""A locked virtual environment for each group of baselines, under a cache folder.

The libraries of the baselines do not fit into one environment, let alone into that of sadrec's user. So each group
gets its own, built from a list of exact versions (the folder ``requirements``) the first time it is asked for:
an interrupted build goes on where it stopped, and an environment whose list has changed since is built anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from sadrec.data.datasets.download import cache_folder
from studies.baselines import rankfm_source
from studies.baselines.catalogue import BASELINES, find
from studies.baselines.errors import BaselineError, RegistryUnreachableError
from studies.baselines.locking import file_lock
from studies.baselines.processes import run_logged, tail

logger = logging.getLogger(__name__)

Report = Callable[[str, int, int], None]
"""Called with what is being done, how many steps are done, and of how many."""

_REQUIREMENTS = Path(__file__).parent / "requirements"
_COMPLETE = "complete.json"
_NO_CONNECTION = re.compile(
    "connection broken by|Could not fetch URL|Max retries exceeded|Failed to establish a new connection"
    "|name resolution|Network is unreachable|Read timed out|from versions: none",
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
        What must be importable when it is complete.
    megabytes
        About how much room it takes.
    pythons
        Versions of Python its libraries run on; ``None`` for all that sadrec runs on.
    """

    name: str
    modules: tuple[str, ...]
    megabytes: int
    pythons: tuple[tuple[int, int], ...] | None = None

    @property
    def requirements(self) -> Path:
        """The list of its packages, each with an exact version."""
        return _REQUIREMENTS / f"{self.name}.txt"

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines that live in it."""
        return tuple(spec.name for spec in BASELINES.values() if spec.environment == self.name)


ENVIRONMENTS: Mapping[str, Environment] = MappingProxyType(
    {
        "light": Environment("light", ("surprise", "cornac.models", "implicit"), 480),
        "rankfm": Environment("rankfm", ("rankfm.rankfm",), 210),
        "recommenders": Environment(
            "recommenders", ("recommenders.models.ncf.ncf_singlenode",), 1700, pythons=((3, 11),)
        ),
    }
)
"""The environments by name."""


def environment_of(name: str) -> Environment | None:
    """Find the environment of a baseline, or the environment with this name; ``None`` for baselines that need none.

    Raises
    ------
    ValueError
        When there is no baseline and no environment of this name.
    """
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]
    wanted = find(name).environment
    return None if wanted is None else ENVIRONMENTS[wanted]


def installed(environment: Environment) -> Path | None:
    """Return the Python of an environment if it is complete and up to date, else ``None``."""
    for folder in _folder_pattern(environment, _digest(environment)):
        if (folder / _COMPLETE).exists() and _python(folder).exists():
            return _python(folder)
    return None


def install(name: str, report: Report | None = None) -> Path:
    """Make sure that a baseline can run: build its environment unless it is there.

    Several processes may ask at once: one builds, the others wait.

    Parameters
    ----------
    name
        A baseline, or an environment.
    report
        Is told about progress.

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
    with file_lock(_root() / f"{environment.name}.lock") as lock:
        return installed(environment) or _build(environment, report or _log_progress, lock)


def remove(name: str) -> bool:
    """Delete the environment of a baseline, complete or not, and tell whether there was one."""
    environment = environment_of(name)
    if environment is None:
        return False
    with file_lock(_root() / f"{environment.name}.lock"):
        folders = _folder_pattern(environment, "*")
        for folder in folders:
            # without its marker it is not taken for complete should the deletion be interrupted
            (folder / _COMPLETE).unlink(missing_ok=True)
            shutil.rmtree(folder)
            folder.with_suffix(".log").unlink(missing_ok=True)
    return bool(folders)


def _build(environment: Environment, report: Report, lock: int) -> Path:
    base = _base_python(environment)
    tag = "".join(map(str, base[1]))
    folder = _root() / f"{environment.name}-py{tag}-{_digest(environment)}"
    python, log = _python(folder), folder.with_suffix(".log")
    total = len(_requirement_lines(environment)) + 2
    began = time.perf_counter()
    logger.info("building the environment %s in %s", environment.name, folder)

    def step(command: list[str | Path], line: Callable[[str], None] | None = None) -> None:
        # the step keeps the lock: should this process be killed, nobody else starts before the step has ended
        if code := run_logged(command, log, line=line, lock=lock):
            _give_up(environment, command, code, log)

    report("creating the environment", 0, total)
    log.unlink(missing_ok=True)
    if not python.exists() or run_logged([python, "-I", "-m", "pip", "--version"], log):
        step([base[0], "-I", "-m", "venv", "--clear", folder])

    collected = 0

    def count(line: str) -> None:
        nonlocal collected
        if line.startswith(("Collecting ", "Requirement already satisfied: ")):
            collected += 1
            report(line.split(": ")[-1].removeprefix("Collecting ").split()[0], min(collected, total - 2), total)
        elif line.startswith("Installing collected packages"):
            report("installing the packages", total - 2, total)

    pip: list[str | Path] = [python, "-I", "-m", "pip", "install", "--no-input"]
    step([*pip, "--no-deps", "-r", environment.requirements], count)
    if environment.name == "rankfm":
        report("building rankfm from its source", total - 1, total)
        rankfm_source.build(python, folder, step)
    report("checking that it works", total - 1, total)
    step([python, "-I", "-c", "import " + ", ".join(environment.modules)])

    facts = {"environment": environment.name, "seconds": round(time.perf_counter() - began, 1)}
    unfinished = folder / (_COMPLETE + ".part")
    unfinished.write_text(json.dumps(facts), encoding="utf-8")
    unfinished.replace(folder / _COMPLETE)
    log.unlink()
    for stale in _root().glob(f"{environment.name}-py{tag}-*"):
        if stale.is_dir() and stale != folder:
            shutil.rmtree(stale, ignore_errors=True)
    report("complete", total, total)
    return python


def _give_up(environment: Environment, command: list[str | Path], code: int, log: Path) -> NoReturn:
    """Say what went wrong with the words of the step itself."""
    said = tail(log)
    baselines = " ".join(environment.baselines)
    message = (
        f"the environment {environment.name!r} (for {baselines}) could not be built: "
        f"{Path(command[0]).name} ended with {code}; all it said is in {log}, its last lines:\n{said}"
    )
    if _NO_CONNECTION.search(log.read_text(errors="replace")):
        raise RegistryUnreachableError(
            f"{message}\nThe package registry could not be reached: check the connection (and pip's settings) and run "
            f"`python -m studies.baselines install {environment.baselines[0]}` again; it goes on where it stopped"
        )
    raise BaselineError(message)


def _base_python(environment: Environment) -> tuple[str, tuple[int, int]]:
    """Find a Python to make the environment with."""
    current = sys.version_info[:2]
    if environment.pythons is None or current in environment.pythons:
        return sys.executable, current
    for major, minor in environment.pythons:
        path = shutil.which(f"python{major}.{minor}")
        # a name on the PATH may be a stub that starts nothing
        if path and not subprocess.run([path, "-c", "import venv"], check=False, capture_output=True).returncode:
            return path, (major, minor)
    wanted = " or ".join(f"{major}.{minor}" for major, minor in environment.pythons)
    raise BaselineError(
        f"{' and '.join(environment.baselines)} need Python {wanted}; this is {current[0]}.{current[1]} and no such "
        "Python is on the PATH: install one, or leave these baselines out"
    )


def _root() -> Path:
    return cache_folder().resolve() / "baselines"


def _folder_pattern(environment: Environment, digest: str) -> list[Path]:
    return sorted(path for path in _root().glob(f"{environment.name}-py*-{digest}") if path.is_dir())


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _requirement_lines(environment: Environment) -> list[str]:
    lines = environment.requirements.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _digest(environment: Environment) -> str:
    """Fingerprint of everything that decides what the environment contains."""
    parts = [*_requirement_lines(environment)]
    if environment.name == "rankfm":
        parts += [rankfm_source.ARCHIVE, rankfm_source.DECLARATION]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _log_progress(text: str, done: int, total: int) -> None:
    logger.debug("%d of %d: %s", done, total, text)
