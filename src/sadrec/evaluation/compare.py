"""Every model on every split, resumable after a kill."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

from sadrec.data import Interactions, as_interactions
from sadrec.evaluation._fitting import OutOfTimeError, described, fitted, fresh, plain, time_limit
from sadrec.evaluation._store import Arrays, Store, fingerprint, key_of
from sadrec.evaluation.comparison import Comparison, Run
from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.result import Evaluation
from sadrec.evaluation.top_n import evaluate_top_n

log = logging.getLogger(__name__)
Protocol = Literal["leave_one_out", "top_n"]
Split = tuple[Interactions, Interactions]
Splits = int | Sequence[Split] | Sequence[Callable[[], Split]]


def compare(
    models: Mapping[str, Any],
    data: Interactions | None = None,
    splits: Splits = 20,
    *,
    protocol: Protocol = "leave_one_out",
    N: int | Sequence[int] = 10,
    test: float = 0.2,
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | Mapping[str, float] | None = None,
    per_user: bool = True,
    retry: bool = True,
    at_most: Mapping[str, int] | None = None,
    also: Mapping[str, Callable[[Any], float]] | None = None,
    progress: bool = True,
) -> Comparison:
    """Fit and evaluate every model on every split.

    Parameters
    ----------
    models
        Name to model: something with ``fit(data)`` (copied by its settings, never changed), or a function without
        arguments that makes one.
    data
        What is split, in any form that ``fit`` takes; not needed when ``splits`` holds the splits themselves.
    splits
        How many random splits, or the splits: (train, test) pairs, or functions that make one when it is needed.
    protocol
        ``"leave_one_out"`` holds out one interaction per user and calls :func:`~sadrec.evaluation.evaluate`;
        ``"top_n"`` holds out the share ``test`` and calls :func:`~sadrec.evaluation.evaluate_top_n` with ``N``.
    seed
        Split s is drawn with ``seed + s``, and so are its sampled items; every model gets the same.
    path
        A folder for results: one small file per (model, split), keyed by the data, the model's settings and the
        protocol. What is there already is not computed again, so a killed comparison goes on where it was. (What a
        factory captures beyond the settings of the model it makes is not seen.)
    budget
        Seconds that a fit and its evaluation may take, for all models or by name.
    per_user
        Keep every user's values, which tests over users need.
    retry
        Whether rows that failed in an earlier run are tried again; those that ran out of time are when the budget is
        larger than what they took.
    at_most
        Models that run on fewer splits, by name: the first so many.
    also
        Further figures by name, each computed from the fitted model: its size, its sparsity, ...
    progress
        Show a progress bar.

    Returns
    -------
    Comparison
        Tidy frame, means and spreads, paired tests, tables and pictures. A model that failed or ran out of time has a
        row that says so.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 6, (30, 40))))
    >>> class Popularity:
    ...     def fit(self, train):
    ...         self.users, self.items = train.users, train.items
    ...         self.counts = np.bincount(train.matrix.indices, minlength=40).astype(float)
    ...     def scores(self, users):
    ...         return np.tile(self.counts, (len(users), 1))
    >>> result = compare({"popularity": Popularity}, data, splits=2, progress=False)
    >>> result.summary().filter(measure="match").select("model", "splits").rows()
    [('popularity', 2)]
    """
    if protocol not in ("leave_one_out", "top_n"):
        raise ValueError(f"protocol must be 'leave_one_out' or 'top_n', got {protocol!r}")
    _check_models(models, budget, at_most or {})
    pieces = _splits(data, splits, protocol, test, seed)
    most = {name: min((at_most or {}).get(name, len(pieces)), len(pieces)) for name in models}
    further = dict(also or {})
    settings = {"protocol": protocol, "also": sorted(further)} | ({"N": plain(N)} if protocol == "top_n" else {})
    store = Store(path)
    runs: list[Run] = []
    kept: dict[tuple[str, int], Arrays] = {}
    with tqdm(total=sum(most.values()), disable=not progress, desc="compare") as bar:
        for number, make in enumerate(pieces):
            train, held_out = make()
            data_key = fingerprint(train, held_out)
            for name, model in models.items():
                if number >= most[name]:
                    continue
                bar.set_postfix_str(f"{name}, split {number}")
                limit = budget.get(name) if isinstance(budget, Mapping) else budget
                work = _Work(name, number, model, train, held_out, settings, seed + number, limit, further)
                run, arrays = work.result(store, data_key, N, per_user, retry)
                runs.append(run)
                if arrays:
                    kept[name, number] = arrays
                bar.update()
    return Comparison(runs, kept)


def _check_models(
    models: Mapping[str, Any], budget: float | Mapping[str, float] | None, at_most: Mapping[str, int]
) -> None:
    """Refuse what would otherwise be a row of errors, or pass unseen."""
    if not isinstance(models, Mapping) or not all(isinstance(name, str) for name in models):
        raise TypeError(f"models must be given by name, as {{'name': model}}, not {models!r}")
    if not models:
        raise ValueError("there are no models to compare; give at least one as {'name': model}")
    budgets = budget if isinstance(budget, Mapping) else {} if budget is None else dict.fromkeys(models, budget)
    for what, limits in (("budget", budgets), ("at_most", at_most)):
        for name, limit in limits.items():
            if name not in models:
                raise ValueError(f"{what} names {name!r}, which is not among the models: {', '.join(models)}")
            if not limit > 0:
                raise ValueError(f"{what} must be above 0, not {limit!r} (for {name!r})")


def _splits(
    data: Interactions | None, splits: Splits, protocol: Protocol, test: float, seed: int
) -> list[Callable[[], Split]]:
    if isinstance(splits, int | np.integer):
        if splits < 1:
            raise ValueError(f"splits must be at least 1, got {splits}")
        if data is None:
            raise ValueError("give data to split, or the splits themselves as (train, test) pairs")
        data = as_interactions(data)
        return [partial(_drawn, data, protocol, test, seed + number) for number in range(splits)]
    if not isinstance(splits, Sequence) or not all(callable(part) or len(part) == 2 for part in splits):
        raise TypeError(f"splits must be a whole number or a list of (train, test) pairs, not {splits!r}")
    if not splits:
        raise ValueError("splits is empty; give at least one (train, test) pair")
    return [part if callable(part) else partial(_given, part) for part in splits]


def _drawn(data: Interactions, protocol: Protocol, test: float, seed: int) -> Split:
    return data.leave_one_out(seed=seed) if protocol == "leave_one_out" else data.split(test=test, seed=seed)


def _given(split: Split) -> Split:
    return split


class _Work:
    """One model on one split."""

    def __init__(
        self,
        name: str,
        split: int,
        model: Any,
        train: Interactions,
        held_out: Interactions,
        settings: Mapping[str, Any],
        seed: int,
        limit: float | None,
        further: Mapping[str, Callable[[Any], float]],
    ) -> None:
        self.name, self.split, self.model = name, split, model
        self.train, self.held_out = train, held_out
        self.settings, self.seed, self.limit, self.further = settings, seed, limit, further

    def result(
        self, store: Store, data_key: str, N: int | Sequence[int], per_user: bool, retry: bool
    ) -> tuple[Run, Arrays]:
        """Return what the store has, or do the work and store it."""
        try:
            model = fresh(self.model)
            about = described(model)
        except Exception as error:
            return self._failed("failed", error, {}, 0.0), {}
        key = key_of(self.name, about, data_key, self.settings, self.seed, per_user)
        found = store.load(key)
        if found is not None and not self._again(found[0], retry):
            return Run.from_record(found[0]), found[1]
        run, arrays = self._done(model, about, N, per_user)
        store.save(key, run.to_record(), arrays)
        return run, arrays

    def _again(self, record: Mapping[str, Any], retry: bool) -> bool:
        """Whether a stored row is worth another try."""
        if record["status"] == "out of time":
            return self.limit is None or self.limit > record["fit_seconds"]
        return retry and record["status"] == "failed"

    def _done(self, model: Any, about: dict[str, Any], N: int | Sequence[int], per_user: bool) -> tuple[Run, Arrays]:
        start = time.perf_counter()
        try:
            with time_limit(self.limit):
                model = fitted(model, self.train)
                trained = time.perf_counter()
                result = self._evaluated(model, N)
                figures = {name: float(value) for name, value in result.items()}
                figures |= {name: float(figure(model)) for name, figure in self.further.items()}
                end = time.perf_counter()
        except OutOfTimeError as error:
            return self._failed("out of time", error, about, time.perf_counter() - start), {}
        except Exception as error:
            log.warning("%s failed on split %d: %s", self.name, self.split, error)
            log.debug("where it failed", exc_info=True)
            return self._failed("failed", error, about, time.perf_counter() - start), {}
        arrays: dict[str, Any] = {}
        if per_user:
            arrays = {f"of {name}": values.astype(np.float32) for name, values in result.per_user.items()}
            arrays["users"] = np.asarray(result.users)
        run = self._run("done", "", about, trained - start, end - trained, figures, result)
        return run, arrays

    def _evaluated(self, model: Any, N: int | Sequence[int]) -> Evaluation:
        if self.settings["protocol"] == "top_n":
            return evaluate_top_n(model, self.train, self.held_out, N, seed=self.seed)
        return evaluate(model, self.train, self.held_out, self.seed)

    def _failed(self, status: str, error: Exception, about: dict[str, Any], seconds: float) -> Run:
        first = str(error).strip().splitlines()
        message = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
        return self._run(status, message, about, seconds, 0.0, {}, None)

    def _run(
        self,
        status: str,
        message: str,
        about: dict[str, Any],
        fit_seconds: float,
        evaluate_seconds: float,
        figures: dict[str, float],
        result: Evaluation | None,
    ) -> Run:
        return Run(
            model=self.name,
            split=self.split,
            status=status,
            message=message,
            about=about,
            fit_seconds=fit_seconds,
            evaluate_seconds=evaluate_seconds,
            train_size=int(self.train.matrix.nnz),
            test_size=int(self.held_out.matrix.nnz),
            figures=figures,
            errors={} if result is None else dict(result.errors),
            counts={} if result is None else dict(result.counts),
        )
