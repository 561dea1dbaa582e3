"""Shared by the toolkits: the check of a version, a model by its name, and the order of a method."""

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sadrec._core.check import one_of, whole
from sadrec._core.types import Positions, SlateMethod

METHODS: tuple[SlateMethod, ...] = get_args(SlateMethod)
"""The orders of a list: by mean margin over the catalogue, or by what the best play against each other."""
CANDIDATES = 200
"""The number of best items by mean margin that play each other, as in ``SAD.recommend``."""
_MODELS = {"SAD": "sadrec.models", "BPR": "sadrec.models", "GibbsSAD": "sadrec.posterior"}


def require(toolkit: str, package: str, oldest: str, below: str) -> None:
    """Raise an ImportError of one line unless a package is installed, of a version from ``oldest`` to ``below``."""
    wanted = f"{toolkit} {oldest} or newer, below {below}: pip install '{package}>={oldest},<{below}'"
    try:
        installed = version(package)
    except PackageNotFoundError:
        raise ImportError(f"this integration needs {wanted}", name=package) from None
    if not _numbers(oldest) <= _numbers(installed) < _numbers(below):
        raise ImportError(
            f"{toolkit} {installed} is installed, and this integration was tested with {wanted}", name=package
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def made(name: str, settings: Mapping[str, Any]) -> Any:
    """Return a model that is not fitted, by the name of its class and its settings."""
    one_of(name, "model", tuple(_MODELS))
    return getattr(import_module(_MODELS[name]), name)(**settings)


def checked(method: Any, candidates: Any) -> tuple[SlateMethod, int]:
    """Return a checked method and the number of items that it orders."""
    return one_of(method, "method", METHODS), whole(candidates, "candidates", least=1)


def ordered(model: Any, user: Any, best: Positions, method: SlateMethod, candidates: int) -> Positions:
    """Return item rows, given best first by mean margin, with the first ``candidates`` in the order of a method."""
    if method == "margin" or not len(best):
        return best
    playing = best[:candidates]
    ranking = model.rank(user, model.items[playing], method)
    return np.concatenate([model.state.items.positions(ranking.items), best[candidates:]])


def exchanged(scores: NDArray[Any], best: Positions, now: Positions) -> NDArray[Any]:
    """Return scores that put items in another order: the items in ``now`` get, in turn, the scores of ``best``.

    >>> exchanged(np.array([3.0, 1.0, 2.0]), np.array([0, 2, 1]), np.array([2, 0, 1]))
    array([2., 1., 3.])
    """
    answer = scores.copy()
    answer[now] = scores[best]
    return answer
