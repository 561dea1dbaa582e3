"""Which values a setting of a baseline may take, and what to say when it does not."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """What is allowed, in words; the plain value of an allowed one, and None for any other."""

    allowed: str
    plain: Callable[[Any], Any]


def _whole(least: int) -> Rule:
    def plain(value: Any) -> int | None:
        good = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
        return int(value) if good else None

    return Rule(f"a whole number from {least} up", plain)


def _number(*, zero: bool) -> Rule:
    def plain(value: Any) -> float | None:
        good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if good and (value > 0 or (zero and value == 0)) else None

    return Rule("a number from 0 up" if zero else "a number above 0", plain)


def _one_of(*choices: str) -> Rule:
    return Rule(" or ".join(map(repr, choices)), lambda value: value if value in choices else None)


def _layers(value: Any) -> list[int] | None:
    sizes = [_whole(1).plain(size) for size in value] if isinstance(value, list | tuple) else []
    return sizes if sizes and None not in sizes and sizes[0] % 2 == 0 else None


_RULES: Mapping[str, Rule] = {
    "alpha": _number(zero=False),
    "batch_size": _whole(1),
    "beta": _number(zero=True),
    "cells": _one_of("all", "sampled"),
    "factors": _whole(1),
    "hidden": _whole(1),
    "iterations": _whole(1),
    "layers": Rule("a list of layer sizes from 1 up, the first of them even, e.g. [128, 64, 32]", _layers),
    "learning_rate": _number(zero=False),
    "loss": _one_of("bpr", "warp"),
    "num_threads": _whole(0),
    "own_factors": Rule("True or False", lambda value: value if isinstance(value, bool) else None),
    "random_state": _whole(0),
    "regularization": _number(zero=True),
    "zeros": _whole(1),
    # EASE inverts a matrix that only the penalty makes regular; RankFM insists
    "ease.regularization": _number(zero=False),
    "fm.regularization": _number(zero=False),
}


def resolve_settings(name: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the given settings of a baseline with its defaults.

    Raises
    ------
    TypeError
        When the baseline has no such setting.
    ValueError
        When a value is out of range.
    """
    resolved = {}
    for setting in given:
        if setting not in defaults:
            raise TypeError(f"{name} has no setting {setting!r}: it has {', '.join(defaults) or 'none'}")
    for setting, value in {**defaults, **given}.items():
        rule = _RULES.get(f"{name}.{setting}", _RULES[setting])
        resolved[setting] = rule.plain(value)
        if resolved[setting] is None:
            raise ValueError(f"{name}: {setting}={value!r} must be {rule.allowed}")
    return resolved
