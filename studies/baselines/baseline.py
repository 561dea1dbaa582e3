"""A baseline behind the protocol: other people's library, run where it lives, its scores read from a file."""

import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sadrec.data import Ids, Interactions, as_interactions
from sadrec.models import NotFittedError
from studies.baselines import environments, programs
from studies.baselines.catalogue import BASELINES, BaselineSpec, find
from studies.baselines.errors import BaselineError, BaselineTimeoutError
from studies.baselines.processes import run_logged, tail
from studies.baselines.programs import exchange
from studies.baselines.programs.run import run
from studies.baselines.settings import resolve_settings

logger = logging.getLogger(__name__)

Array = NDArray[Any]
Where = Literal["auto", "here", "environment"]
Features = tuple[Any, Array]
"""Ids, and a matrix with a row for each."""

_START = "import sys; sys.path.append(sys.argv[1]); from programs.run import main; main(sys.argv[2:])"
_LOG = "log.txt"


@dataclass(frozen=True, eq=False)
class _Fitted:
    users: Ids
    items: Ids
    scores: Array
    facts: Mapping[str, Any]


class Baseline:
    """One of other people's models, trained by its own library, with the verbs that an evaluation asks for.

    The library runs as a program that reads the interactions from a file and writes a users x items file of
    scores, which is memory-mapped here; the file is deleted with the model.

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
    >>> model = Baseline("svd", factors=32, cells="sampled")
    >>> model.settings["factors"]
    32
    >>> model.trained_on
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
        self.name = name
        self.spec: BaselineSpec = spec
        self.timeout = timeout
        self.where: Where = where
        self.settings: Mapping[str, Any] = MappingProxyType(resolve_settings(name, spec.defaults, settings))
        self.state: _Fitted | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return everything the model was made with, by name."""
        return {"name": self.name, "timeout": self.timeout, "where": self.where, **self.settings}

    def clone(self, **changes: Any) -> Self:
        """Return a model that is not fitted, with the same settings but for those given here."""
        return type(self)(**{**self.get_params(), **changes})

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({self.name!r}{settings})"

    @property
    def trained_on(self) -> str:
        """What the baseline learns from, as a sentence for a table; with counts when it is fitted."""
        return self.spec.trained_on(self.settings) if self.state is None else str(self.state.facts["trained_on"])

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the program reports: ``trained_on``, ``versions``, ``fit_seconds``, ``score_seconds``."""
        return MappingProxyType(dict(self._known().facts))

    @property
    def users(self) -> Array:
        """Ids of the users, in row order."""
        return self._known().users.array

    @property
    def items(self) -> Array:
        """Ids of the items, in column order."""
        return self._known().items.array

    def fit(
        self,
        data: Any,
        show_progress: bool = True,
        *,
        user_features: Features | None = None,
        item_features: Features | None = None,
    ) -> Self:
        """Learn from interactions, in any form that :class:`~sadrec.SAD` takes, and return the model.

        Features are ids and a matrix with a row for each: of all users or items of the data, and of those without
        history that are to be scored as well.
        """
        interactions = as_interactions(data)
        if not self.spec.features and (user_features is not None or item_features is not None):
            known = ", ".join(spec.name for spec in BASELINES.values() if spec.features)
            raise ValueError(f"{self.name} knows no features: leave them out, or take {known}")
        users, user_rows = _with_features(Ids(interactions.users, what="user"), user_features)
        items, item_rows = _with_features(Ids(interactions.items, what="item"), item_features)
        python = self._choose_python()
        path = Path(tempfile.mkdtemp(prefix=f"sadrec-{self.name}-"))
        try:
            scores, facts = self._train(path, python, interactions, user_rows, item_rows)
            if scores.shape != (len(users), len(items)):
                raise BaselineError(f"{self.name} wrote scores of shape {scores.shape} for {(len(users), len(items))}")
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        self.state = _Fitted(users, items, scores, facts)
        weakref.finalize(self.state, shutil.rmtree, path, ignore_errors=True)
        return self

    def _train(
        self, path: Path, python: Path | None, interactions: Interactions, user_rows: Any, item_rows: Any
    ) -> tuple[Array, Mapping[str, Any]]:
        """Return scores, which stay in a file of the folder, and what the program says of itself."""
        matrix = interactions.matrix
        exchange.write_training(
            path,
            exchange.Training(
                matrix.indptr.astype(np.int64),
                matrix.indices.astype(np.int32),
                matrix.data.astype(np.float32),
                (int(matrix.shape[0]), int(matrix.shape[1])),
                user_rows,
                item_rows,
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
        (path / exchange.TRAINING).unlink()
        return scores, facts

    def scores(self, users: Any, /) -> Array:
        """Scores of all ``items`` (columns) for ``users`` (rows); higher is better."""
        known = self._known()
        return np.asarray(known.scores[np.atleast_1d(known.users.positions(users))])

    def _known(self) -> "_Fitted":
        if self.state is None:
            raise NotFittedError(f"{self.name} is not fitted yet: call fit first")
        return self.state

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


def _with_features(known: Ids, features: Features | None) -> tuple[Ids, NDArray[np.float32] | None]:
    """Return the ids of the data, then those that only features have; and the features, a row for each."""
    if features is None:
        return known, None
    given, matrix = Ids(features[0], what=known.what), np.asarray(features[1], np.float32)
    missing = known.array[~given.known(known.array)]
    if len(missing) or len(matrix) != len(given):
        which = f"no row for {missing[0].item()!r}" if len(missing) else f"{len(matrix)} rows for {len(given)} ids"
        raise ValueError(f"the features have {which}: give a row for each {known.what} of the data")
    more = given.array[~known.known(given.array)]
    ids = Ids(np.concatenate([known.array, more]), what=known.what)
    return ids, matrix[given.positions(ids.array)]
