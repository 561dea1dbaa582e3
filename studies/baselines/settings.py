"""Which values a setting of a baseline may take, and what to say when it does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Check = Callable[[Any], Any]


def _whole(least: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or int(value) < least:
            raise ValueError(f"a whole number from {least} up")
        return int(value)

    return check


def _number(above: float | None = None, least: float | None = None) -> Check:
    def check(value: Any) -> float:
        good = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)
        if not good or (above is not None and value <= above) or (least is not None and value < least):
            raise ValueError(f"a number above {above:g}" if above is not None else f"a number from {least:g} up")
        return float(value)

    return check


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(" or ".join(map(repr, choices)))
        return str(value)

    return check


def _layers(value: Any) -> list[int]:
    try:
        sizes = [_whole(1)(size) for size in value]
    except (TypeError, ValueError):
        sizes = []
    if not sizes or sizes[0] % 2:
        raise ValueError("a list of layer sizes from 1 up, the first of them even, e.g. [128, 64, 32]")
    return sizes


_CHECKS: Mapping[str, Check] = {
    "alpha": _number(above=0),
    "batch_size": _whole(1),
    "beta": _number(least=0),
    "cells": _one_of("all", "sampled"),
    "factors": _whole(1),
    "hidden": _whole(1),
    "iterations": _whole(1),
    "layers": _layers,
    "learning_rate": _number(above=0),
    "loss": _one_of("bpr", "warp"),
    "num_threads": _whole(0),
    "random_state": _whole(0),
    "regularization": _number(least=0),
    "zeros": _whole(1),
    # EASE inverts a matrix that only the penalty makes regular; RankFM insists
    "ease.regularization": _number(above=0),
    "fm.regularization": _number(above=0),
}


def check_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the values of settings and bring them into plain types.

    Raises
    ------
    ValueError
        When a value is out of range.
    """
    checked = {}
    for setting, value in settings.items():
        try:
            checked[setting] = _CHECKS.get(f"{name}.{setting}", _CHECKS[setting])(value)
        except ValueError as error:
            raise ValueError(f"{name}: {setting}={value!r} must be {error}") from None
    return checked


def resolve_settings(name: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the given settings of a baseline with its defaults.

    Raises
    ------
    TypeError
        When the baseline has no such setting.
    ValueError
        When a value is out of range.
    """
    for setting in given:
        if setting not in defaults:
            raise TypeError(f"{name} has no setting {setting!r}: it has {', '.join(defaults) or 'none'}")
    return check_settings(name, {**defaults, **given})
