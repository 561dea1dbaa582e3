"""How a model that is only known by its verbs is copied, described and fitted within a time limit."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from sadrec.data import Interactions


class OutOfTimeError(RuntimeError):
    """A model took longer than its time budget."""


def fresh(model: Any) -> Any:
    """Return a model that is not fitted: what a factory makes, or a copy of an estimator by its settings.

    Raises
    ------
    TypeError
        When ``model`` is neither a factory nor something with ``fit``.
    """
    if isinstance(model, type) or not hasattr(model, "fit"):
        if not callable(model):
            raise TypeError(
                f"cannot fit {type(model).__name__}: give a model with fit(data), or a function without arguments that "
                "makes one"
            )
        made = model()
        if not hasattr(made, "fit"):
            raise TypeError(f"the factory made a {type(made).__name__}, which has no fit(data)")
        return made
    if hasattr(model, "get_params"):
        return type(model)(**model.get_params())
    if hasattr(model, "with_settings"):
        return model.with_settings()
    return copy.deepcopy(model)


def described(model: Any) -> dict[str, Any]:
    """Return class and settings of a model in plain values, as they stand in a results file."""
    if hasattr(model, "get_params"):
        settings = model.get_params()
    else:
        settings = getattr(model, "settings", None)
        if settings is None:
            settings = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    return {"class": f"{type(model).__module__}.{type(model).__qualname__}", "settings": plain(settings)}


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold, the same text for the same value.

    Examples
    --------
    >>> plain({"rate": np.float32(0.5), "layers": (8, 4), "bad": float("nan")})
    {'rate': 0.5, 'layers': [8, 4], 'bad': None}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Sequence | set | frozenset):
        return [plain(entry) for entry in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return f"{type(value).__module__}.{type(value).__qualname__}"


def fitted(model: Any, train: Interactions, callbacks: Sequence[Any] = ()) -> Any:
    """Fit ``model`` quietly and return it; ``callbacks`` are passed on where its ``fit`` takes some."""
    accepted = takes(model.fit)
    options: dict[str, Any] = {}
    if "show_progress" in accepted:
        options["show_progress"] = False
    if callbacks and "callbacks" in accepted:
        options["callbacks"] = list(callbacks)
    result = model.fit(train, **options)
    return model if result is None else result


def takes(function: Any) -> set[str]:
    """Names of the arguments a function takes, none when that cannot be known."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise :class:`OutOfTimeError` inside the block after so many seconds.

    In the main thread of a Unix process the block is interrupted; elsewhere it runs to its end and the error comes
    then.
    """
    if seconds is None:
        yield
        return
    if seconds <= 0:
        raise ValueError(f"a time budget must be above 0 seconds, got {seconds}")
    message = f"took longer than its budget of {seconds:g} seconds"
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def expire(number: int, frame: FrameType | None) -> None:
            raise OutOfTimeError(message)

        before = signal.signal(signal.SIGALRM, expire)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    start = time.perf_counter()
    yield
    if time.perf_counter() - start > seconds:
        raise OutOfTimeError(message)


def variant(model: Any, settings: Mapping[str, Any]) -> Any:
    """Return an unfitted model with some settings: made by a class or function, or a changed copy of a model."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        if not callable(model):
            raise TypeError(f"cannot make a model from {type(model).__name__}: give a class, a function or a model")
        return model(**settings)
    if hasattr(model, "get_params"):
        return type(model)(**{**model.get_params(), **settings})
    if hasattr(model, "with_settings"):
        return model.with_settings(**settings)
    raise TypeError(
        f"cannot change the settings of a {type(model).__name__}: it has neither get_params nor with_settings; give "
        "its class or a function that takes settings"
    )


def accepted(model: Any) -> set[str] | None:
    """Names of the settings a model takes, or ``None`` when it takes any or they cannot be known."""
    if not isinstance(model, type) and hasattr(model, "get_params"):
        return set(model.get_params())
    if not isinstance(model, type) and hasattr(model, "with_settings"):
        settings = getattr(model, "settings", None)
        return set(settings) if isinstance(settings, Mapping) else None
    try:
        parameters = inspect.signature(model).parameters
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return set(parameters)
