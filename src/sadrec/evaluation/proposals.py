"""The settings to try: every point of a grid, random points, or those that Optuna's TPE proposes."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, Literal

import numpy as np

from sadrec._core.memory import need
from sadrec._core.settings import Span, opened, search_space
from sadrec.evaluation.tune_result import SettingsPoint, Trial

Sampler = Literal["grid", "random", "tpe"]
Space = Mapping[str, Span | Sequence[Any]]


def proposals(
    model: Any,
    sampler: Sampler,
    space: Space | Sequence[Mapping[str, Any]],
    start: list[SettingsPoint],
    trials: int | None,
    seed: int,
    better: int,
) -> tuple[int, Callable[[Sequence[Trial]], SettingsPoint]]:
    """Return how many points there are, and a function that gives the next of them.

    Which one it is depends on the seed and on the scores of the trials before, and on nothing else.
    """
    settings = {**model.get_params(), **(opened(model) if is_dataclass(model) else {})}
    points = [dict(point) for point in space] if isinstance(space, Sequence) else None
    chosen = dict(space) if isinstance(space, Mapping) else {}
    if not chosen and not points:
        raise ValueError("the space is empty; give values by setting, e.g. {'learning_rate': [0.01, 0.1]}")
    for name in [*chosen, *(name for point in [*start, *(points or [])] for name in point)]:
        if name not in settings:
            raise ValueError(f"the model has no setting {name!r}; it has {', '.join(settings)}")
    if points is None and sampler == "grid":
        points = grid_points(chosen, trials, seed)
    if points is not None:
        listed = [*start, *(point for point in points if point not in start)]
        return min(trials or len(listed), len(listed)), lambda done: listed[len(done)]
    for name, values in chosen.items():
        if not isinstance(values, Span):
            _listed(name, values)
    draw = _random(chosen, seed) if sampler == "random" else _tpe(chosen, seed, better)
    return trials or 50, lambda done: start[len(done)] if len(done) < len(start) else draw(done)


def default_space(model: Any, kind: str) -> tuple[list[SettingsPoint], Space]:
    """Return points to try first, and the space that the settings of a model declare for data of a kind.

    Where a setting decides whether others have an effect (the solver), its values without them are few points: they
    come first, and the space has its other values.
    """
    space = search_space(model, kind) if is_dataclass(model) else {}
    needs = {name: opened(model)[name].metadata["needs"] for name in space}
    first: list[SettingsPoint] = []
    for deciding in dict.fromkeys(other for needed in needs.values() for other in needed):
        for value in space.pop(deciding, ()):
            with_effect = {name: tries for name, tries in space.items() if needs[name].get(deciding, value) == value}
            if len(with_effect) == len(space):
                space = {deciding: (value,), **space}
                continue
            listed = {name: tries for name, tries in with_effect.items() if not isinstance(tries, Span)}
            first += grid_points({deciding: [value], **listed})
    return first, space


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not len(listed := list(values)):
        raise ValueError(f"give a Span or a list of values for {name!r}, not {values!r}")
    return listed


def grid_points(space: Mapping[str, Any], trials: int | None = None, seed: int = 0) -> list[SettingsPoint]:
    """Return all combinations of values in order, or this number of them, drawn at random.

    Examples
    --------
    >>> grid_points({"a": [1, 2], "b": [3]})
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    for name, values in space.items():
        if isinstance(values, Span):
            raise ValueError(f"a grid needs a list of values for {name!r}, not {values}; sampler='random' takes spans")
    listed = {name: _listed(name, values) for name, values in space.items()}
    number = math.prod(map(len, listed.values()))
    need(number * 64 * (4 + len(listed)), f"a grid of {number:,} points", "list fewer values or take sampler='random'")
    points = [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
    if trials is None or trials >= len(points):
        return points
    chosen = np.random.default_rng(seed).choice(len(points), trials, replace=False)
    return [points[index] for index in sorted(chosen.tolist())]


def _random(space: Mapping[str, Any], seed: int) -> Callable[[Sequence[Trial]], SettingsPoint]:
    """Return a sampler whose n-th point depends on (seed, n) alone."""

    def next_point(done: Sequence[Trial]) -> SettingsPoint:
        rng = np.random.default_rng((seed, len(done)))
        point = {}
        for name, values in space.items():
            if isinstance(values, Span):
                low, high = (math.log(end) if values.log else end for end in (values.low, values.high))
                whole = _is_whole(values)
                value = rng.uniform(low, high) if values.log or not whole else rng.integers(int(low), int(high) + 1)
                value = math.exp(value) if values.log else value
                point[name] = round(value) if whole else float(value)
            else:
                listed = _listed(name, values)
                point[name] = listed[int(rng.integers(len(listed)))]
        return point

    return next_point


def _is_whole(span: Span) -> bool:
    return isinstance(span.low, int) and isinstance(span.high, int)


def _tpe(space: Mapping[str, Any], seed: int, better: int) -> Callable[[Sequence[Trial]], SettingsPoint]:
    """Return a sampler by Optuna, which gets all earlier trials; the n-th point is drawn with (seed, n)."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "TPE needs Optuna: pip install 'sadrec[tune]', or set sampler='random' (--sampler random)"
        ) from error
    kinds = optuna.distributions
    distributions: dict[str, Any] = {}
    for name, values in space.items():
        if not isinstance(values, Span):
            distributions[name] = kinds.CategoricalDistribution(list(values))
        elif _is_whole(values):
            distributions[name] = kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
        else:
            distributions[name] = kinds.FloatDistribution(values.low, values.high, log=values.log)
    verbosity = optuna.logging.get_verbosity()

    def next_point(done: Sequence[Trial]) -> SettingsPoint:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            # The plain sampler draws every setting on its own, and wastes trials where settings depend on each other.
            study = optuna.create_study(
                direction="maximize" if better > 0 else "minimize",
                sampler=optuna.samplers.TPESampler(multivariate=True, seed=seed + len(done)),
            )
            for trial in done:
                if set(trial.settings) != set(space) or trial.status != "done":
                    continue  # the sampler learns from points of its own space only
                with suppress(ValueError):  # a start that lies outside the space
                    study.add_trial(
                        optuna.trial.create_trial(
                            value=trial.score, params=dict(trial.settings), distributions=distributions
                        )
                    )
            return dict(study.ask(distributions).params)
        finally:
            optuna.logging.set_verbosity(verbosity)

    return next_point
