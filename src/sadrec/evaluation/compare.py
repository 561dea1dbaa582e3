"""Every model on every split, resumable after a kill."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sadrec._core.files import plain
from sadrec._core.progress import Bar
from sadrec._core.record import Arrays
from sadrec.data import Comparisons, Ids, Interactions, as_feedback
from sadrec.evaluation._running import Data, FinishedWork, data_fingerprint, failure, time_limit, worth_another_try
from sadrec.evaluation.compare_result import CompareResult, SplitRun
from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.protocol import about, copied
from sadrec.evaluation.result import Evaluation
from sadrec.evaluation.top_n import evaluate_top_n

Protocol = Literal["leave_one_out", "top_n", "comparisons"]
Split = tuple[Data, Data]
Splits = int | Sequence[Split] | Sequence[Callable[[], Split]]


def compare(
    models: Mapping[str, Any],
    data: Any = None,
    splits: Splits = 20,
    *,
    protocol: Protocol | None = None,
    N: int | Sequence[int] = 10,
    test: float = 0.2,
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | Mapping[str, float] | None = None,
    show_progress: bool = True,
) -> CompareResult:
    """Fit and evaluate every model on every split.

    Parameters
    ----------
    models
        Name to model: copied by its settings, never changed. See :mod:`sadrec.evaluation.protocol` for models of your
        own.
    data
        What is split: interactions in any form that ``fit`` takes, or Comparisons; not needed when ``splits`` holds
        the splits themselves.
    splits
        How many random splits, or the splits: (train, test) pairs, or functions that make one when it is needed.
    protocol
        ``"leave_one_out"`` holds out one interaction per user and calls :func:`~sadrec.evaluation.evaluate`;
        ``"top_n"`` holds out the share ``test`` and calls :func:`~sadrec.evaluation.evaluate_top_n` with ``N``;
        ``"comparisons"`` holds out the share ``test`` and calls :func:`~sadrec.evaluation.evaluate_comparisons`. By
        default the first for interactions and the last for comparisons.
    seed
        Split s is drawn with ``seed + s``, and so are its sampled items; every model gets the same.
    path
        A folder for results: one small file per (model, split), keyed by the data, the model's settings and the
        protocol. Finished pieces are not computed again, so a killed comparison continues.
    budget
        Seconds that a fit and its evaluation may take, for all models or by name. What failed in an earlier run is
        tried again, and so is what ran out of time when the budget is larger than what it took.
    show_progress
        Show a progress bar.

    Returns
    -------
    CompareResult
        Tidy frame, means and spreads, paired tests, tables and pictures. A model that failed or ran out of time has a
        row that says so.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 6, (30, 40))))
    >>> from sadrec.evaluation import Popularity
    >>> result = compare({"popularity": Popularity()}, data, splits=2, show_progress=False)
    >>> result.summary().filter(measure="match").select("model", "splits").rows()
    [('popularity', 2)]
    """
    _check_models(models, budget)
    pieces, protocol = pieces_of(data, splits, protocol, test, seed)
    *_, result = split_by_split(models, pieces, protocol, N, seed, path, budget, show_progress=show_progress)
    return result


def split_by_split(
    models: Mapping[str, Any],
    pieces: Sequence[Callable[[], Split]],
    protocol: Protocol,
    N: int | Sequence[int] = 10,
    seed: int = 0,
    path: str | Path | None = None,
    budget: float | Mapping[str, float] | None = None,
    *,
    show_progress: bool = True,
) -> Iterator[CompareResult]:
    """Compare on one split after the other, and yield the result so far after each."""
    question = {"protocol": protocol} | ({"N": plain(N)} if protocol == "top_n" else {})
    finished = FinishedWork(path, "comparison")
    runs: list[SplitRun] = []
    kept: dict[tuple[str, int], Arrays] = {}
    with Bar(total=len(models) * len(pieces), disable=None if show_progress else True, desc="compare") as bar:
        for number, make in enumerate(pieces):
            train, held_out = make()
            data_key = data_fingerprint(train, held_out)
            for name, model in models.items():
                bar.set_postfix_str(f"{name}, split {number}")
                limit = budget.get(name) if isinstance(budget, Mapping) else budget
                work = _SplitWork(name, number, train, held_out, protocol, N, seed + number, limit)
                run, arrays = work.result(model, finished, (data_key, question))
                runs.append(run)
                if "user_rows" in arrays:
                    kept[name, number] = arrays | {"users": train.users[arrays["user_rows"]]}
                bar.update()
            yield CompareResult(runs, kept)


def _check_models(models: Mapping[str, Any], budget: float | Mapping[str, float] | None) -> None:
    """Raise on models that cannot be compared, before any is fitted."""
    if not isinstance(models, Mapping) or not all(isinstance(name, str) for name in models):
        raise TypeError(f"models must be given by name, as {{'name': model}}, not {models!r}")
    if not models:
        raise ValueError("there are no models to compare; give at least one as {'name': model}")
    budgets = budget if isinstance(budget, Mapping) else {} if budget is None else dict.fromkeys(models, budget)
    for name, limit in budgets.items():
        if name not in models:
            raise ValueError(f"budget names {name!r}, which is not among the models: {', '.join(models)}")
        if not limit > 0:
            raise ValueError(f"budget must be above 0, not {limit!r} (for {name!r})")


def pieces_of(
    data: Any, splits: Splits, protocol: Protocol | None = None, test: float = 0.2, seed: int = 0
) -> tuple[list[Callable[[], Split]], Protocol]:
    """Return functions that make the splits, and their protocol."""
    if protocol not in (None, "leave_one_out", "top_n", "comparisons"):
        raise ValueError(f"protocol must be 'leave_one_out', 'top_n' or 'comparisons', got {protocol!r}")
    if isinstance(splits, int | np.integer):
        if splits < 1:
            raise ValueError(f"splits must be at least 1, got {splits}")
        if data is None:
            raise ValueError("give data to split, or the splits themselves as (train, test) pairs")
        whole = as_feedback(data)
        chosen = _protocol(whole, protocol)
        return [partial(_drawn, whole, chosen, test, seed + number) for number in range(splits)], chosen
    if not isinstance(splits, Sequence) or not all(callable(part) or len(part) == 2 for part in splits):
        raise TypeError(f"splits must be a whole number or a list of (train, test) pairs, not {splits!r}")
    if not splits:
        raise ValueError("splits is empty; give at least one (train, test) pair")
    given = [part if callable(part) else partial(tuple[Data, Data], part) for part in splits]
    return given, _protocol(given[0]()[0], protocol)


def _protocol(data: Data, protocol: Protocol | None) -> Protocol:
    stated = isinstance(data, Comparisons)
    if protocol is not None and (protocol == "comparisons") != stated:
        raise ValueError(f"protocol {protocol!r} does not suit {type(data).__name__}")
    return protocol or ("comparisons" if stated else "leave_one_out")


def _drawn(data: Data, protocol: Protocol, test: float, seed: int) -> Split:
    if isinstance(data, Comparisons) or protocol == "top_n":
        return data.split(test=test, seed=seed)
    return data.leave_one_out(seed=seed)


@dataclass(frozen=True)
class _SplitWork:
    """One model on one split."""

    name: str
    split: int
    train: Data
    held_out: Data
    protocol: Protocol
    N: int | Sequence[int]
    seed: int
    limit: float | None

    def result(self, model: Any, finished: FinishedWork, question: Any) -> tuple[SplitRun, Arrays]:
        """Return the stored result, or compute and store it."""
        run = SplitRun(self.name, self.split, train_size=_size(self.train), test_size=_size(self.held_out))
        try:
            model = copied(model)
            run = replace(run, about=about(model))
        except Exception as error:
            status, message = failure(error, self.name)
            return replace(run, status=status, message=message), {}
        key = (self.name, run.about, question, self.seed)
        before = finished.load(self._from_record, *key)
        if before is not None:
            earlier, arrays = before
            if not worth_another_try(earlier.status, earlier.fit_seconds, self.limit):
                return earlier, arrays
        run, arrays = self._done(model, run)
        finished.save(*key, values=run.to_record(), arrays=arrays)
        return run, arrays

    def _from_record(self, values: dict[str, Any], arrays: Arrays) -> tuple[SplitRun, Arrays]:
        """Return the result in a record; raise if an array is not one figure for each user or each held-out row."""
        users = arrays.get("user_rows", np.empty(0, np.int64))
        if users.ndim != 1 or users.dtype.kind != "i":
            raise ValueError("its users are no positions")
        if len(users) and not 0 <= users.min() <= users.max() < len(self.train.users):
            raise ValueError("it names users that do not exist")
        sizes = {"of": len(users), "row": _size(self.held_out)}
        for name, array in arrays.items():
            if name != "user_rows" and (array.dtype != np.float32 or array.shape != (sizes[name.split(" ")[0]],)):
                raise ValueError(f"{name!r} has the shape {array.shape} and the type {array.dtype}")
        return SplitRun.from_record(values), arrays

    def _done(self, model: Any, run: SplitRun) -> tuple[SplitRun, Arrays]:
        start = time.perf_counter()
        try:
            with time_limit(self.limit):
                model.fit(self.train, show_progress=False)
                trained = time.perf_counter()
                result = self._evaluated(model)
                figures = {name: float(value) for name, value in result.items()}
                end = time.perf_counter()
        except Exception as error:
            status, message = failure(error, f"{self.name}, split {self.split}")
            return replace(run, status=status, message=message, fit_seconds=time.perf_counter() - start), {}
        arrays: Arrays = {f"of {name}": values.astype(np.float32) for name, values in result.per_user.items()}
        arrays |= {f"row {name}": values.astype(np.float32) for name, values in result.per_row.items()}
        arrays["user_rows"] = Ids(self.train.users).positions(result.users)
        run = replace(run, fit_seconds=trained - start, evaluate_seconds=end - trained, sparsity=sparsity_of(model))
        return replace(run, figures=figures, errors=dict(result.errors), counts=dict(result.counts)), arrays

    def _evaluated(self, model: Any) -> Evaluation:
        train, held_out = self.train, self.held_out
        if self.protocol == "top_n" and isinstance(train, Interactions) and isinstance(held_out, Interactions):
            return evaluate_top_n(model, train, held_out, self.N, seed=self.seed)
        return evaluate(model, train, held_out, self.seed)


def sparsity_of(model: Any) -> float:
    """Share of T within 0.05 of 1; 1 for a model without rival factors.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sparsity_of(SimpleNamespace(rival_factors=np.array([[1.0, 1.2], [0.97, 0.0]])))
    0.5
    """
    rivals = getattr(model, "rival_factors", None)
    return 1.0 if rivals is None else float((np.abs(np.asarray(rivals) - 1.0) < 0.05).mean())


def _size(data: Data) -> int:
    return len(data) if isinstance(data, Comparisons) else int(data.matrix.nnz)
