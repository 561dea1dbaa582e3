"""A baseline behind the protocol: other people's library, run where it lives, its scores read from a file."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np

from sadrec.data import Interactions
from sadrec.models.errors import NotFittedError
from studies.baselines import environments, programs
from studies.baselines.catalogue import BaselineSpec, find
from studies.baselines.errors import BaselineError, BaselineTimeoutError
from studies.baselines.processes import run_logged, tail
from studies.baselines.programs import exchange
from studies.baselines.programs.run import run
from studies.baselines.scored import Array, Rows, ScoreModel
from studies.baselines.settings import resolve_settings

logger = logging.getLogger(__name__)

Where = Literal["auto", "here", "environment"]

_START = "import sys; sys.path.append(sys.argv[1]); from programs.run import main; main(sys.argv[2:])"
_LOG = "log.txt"


class Baseline(ScoreModel):
    """One of other people's models, trained by its own library.

    The library runs as a program that reads the interactions from a file and writes a users x items file of
    scores, which is memory-mapped here; the file goes when the baseline goes.

    Parameters
    ----------
    name
        Which one: see :data:`studies.baselines.BASELINES`.
    timeout
        Seconds after which a fit is stopped; ``None`` for no limit.
    where
        ``"environment"`` runs it in the environment that ``python -m studies.baselines install`` built. ``"here"``
        runs it with this Python, which must have the library: in this process, or in another one if there is a timeout.
        ``"auto"`` takes the environment if it is there, and else this Python.
    **settings
        Its settings; the others are the defaults of its :class:`~studies.baselines.BaselineSpec`.

    Raises
    ------
    TypeError
        When the baseline has no such setting.
    ValueError
        When there is no such baseline, or a value is out of range.

    Examples
    --------
    >>> baseline = Baseline("svd", factors=32, cells="sampled")
    >>> baseline.settings["factors"]
    32
    >>> baseline.trained_on
    'every interaction as 1 and, drawn once, 4 empty cells as 0 for each'
    """

    def __init__(self, name: str, *, timeout: float | None = None, where: Where = "auto", **settings: Any) -> None:
        spec = find(name)
        if not spec.program:
            raise ValueError(f"{name} needs no library of others: use studies.baselines.make({name!r})")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be a number of seconds above 0, or None")
        if where not in ("auto", "here", "environment"):
            raise ValueError(f"where={where!r} must be 'auto', 'here' or 'environment'")
        super().__init__(name, resolve_settings(name, spec.defaults, settings))
        self.spec: BaselineSpec = spec
        self.timeout = timeout
        self.where: Where = where
        self._facts: Mapping[str, Any] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def trained_on(self) -> str:
        """What the baseline learns from, as a sentence for a table; with counts once it has."""
        return self.spec.trained_on(self.settings) if self._facts is None else str(self._facts["trained_on"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the program reports: ``trained_on``, ``versions``, ``fit_seconds``, ``score_seconds``."""
        if self._facts is None:
            raise NotFittedError(f"{self.name} has learnt nothing yet: call fit first")
        return MappingProxyType(dict(self._facts))

    def clone(self, **changes: Any) -> Self:
        """Make the same baseline, not fitted, with some settings changed."""
        return type(self)(self.name, timeout=self.timeout, where=self.where, **{**self.settings, **changes})

    def _learn(self, interactions: Interactions) -> None:
        python = self._choose_python()
        folder = tempfile.TemporaryDirectory(prefix=f"sadrec-{self.name}-", ignore_cleanup_errors=True)
        path = Path(folder.name)
        matrix = interactions.matrix
        exchange.write_training(
            path,
            exchange.Training(
                matrix.indptr.astype(np.int64),
                matrix.indices.astype(np.int32),
                matrix.data.astype(np.float32),
                (int(matrix.shape[0]), int(matrix.shape[1])),
            ),
        )
        exchange.write_json(path / exchange.SETTINGS, dict(self.settings))
        logger.info("fitting %s with %s", self.name, python or "this process")
        if python is None:
            self._run_inside(path)
        else:
            self._run_beside(path, python)
        facts = json.loads((path / exchange.FACTS).read_text(encoding="utf-8"))
        scores = np.load(path / exchange.SCORES, mmap_mode="r", allow_pickle=False)
        if scores.shape != matrix.shape:
            raise BaselineError(f"{self.name} wrote scores of shape {scores.shape} for a {matrix.shape} matrix")
        (path / exchange.TRAINING).unlink()
        self._facts, self._folder, self._scores = facts, folder, scores

    def _block(self, rows: Rows) -> Array:
        return np.asarray(self._scores[rows])

    def _choose_python(self) -> Path | None:
        """Find the Python that has the library; ``None`` means this very process."""
        environment = environments.environment_of(self.name)
        python = environments.installed(environment) if environment and self.where != "here" else None
        if python is not None:
            return python
        missing = [module for module in self.spec.modules if importlib.util.find_spec(module) is None]
        if self.where == "environment" or missing:
            raise BaselineError(self._not_there(environment, missing))
        return None if self.timeout is None else Path(sys.executable)

    def _not_there(self, environment: environments.Environment | None, missing: list[str]) -> str:
        if self.where == "here":
            return f"{self.name} cannot run here: this Python has no module {missing[0]!r} ({self.spec.library})"
        size = f" (about {environment.megabytes} MB)" if environment else ""
        return f"{self.name} is not installed: run `python -m studies.baselines install {self.name}`{size}"

    def _run_inside(self, path: Path) -> None:
        try:
            run(self.spec.program, path)
        except Exception as error:
            raise BaselineError(f"{self.name} failed: {type(error).__name__}: {error}") from error

    def _run_beside(self, path: Path, python: Path) -> None:
        log = path / _LOG
        base = Path(programs.__file__).parent.parent
        command: list[str | Path] = [python, "-I", "-c", _START, base, self.spec.program, path]
        try:
            code = run_logged(command, log, environment={"TF_CPP_MIN_LOG_LEVEL": "2"}, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise BaselineTimeoutError(
                f"{self.name} ran out of time: it was allowed {self.timeout:g} s. Its log ends:\n{tail(log)}"
            ) from None
        if code:
            # the first line has to do where there is room for one, as in a table
            raise BaselineError(
                f"{self.name} failed: {tail(log, lines=1)} (exit code {code}). Its log ends:\n{tail(log)}"
            )
