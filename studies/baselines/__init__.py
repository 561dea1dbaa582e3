"""What others do: the models sadrec is compared with, behind the same protocol.

``make(name)`` makes a baseline of :data:`BASELINES`; ``fit``, ``scores`` and ``margins`` are the same for all of them.
Other people's libraries live in environments of their own: ``python -m studies.baselines install NAME``.
"""

from typing import Any

from sadrec.evaluation import EASE, Popularity
from studies.baselines.baseline import Baseline, Where
from studies.baselines.catalogue import BASELINES, BaselineSpec, find
from studies.baselines.environments import install, installed, remove
from studies.baselines.errors import BaselineError, BaselineTimeoutError, RegistryUnreachableError
from studies.baselines.settings import resolve_settings

__all__ = [
    "BASELINES",
    "EASE",
    "Baseline",
    "BaselineError",
    "BaselineSpec",
    "BaselineTimeoutError",
    "Popularity",
    "RegistryUnreachableError",
    "install",
    "installed",
    "make",
    "remove",
]

_OURS: dict[str, Any] = {"popularity": Popularity, "ease": EASE}


def make(name: str, *, timeout: float | None = None, where: Where = "auto", **settings: Any) -> Any:
    """Make a baseline by its name.

    Parameters
    ----------
    name
        One of :data:`BASELINES`.
    timeout, where
        For other people's libraries: see :class:`Baseline`.
    **settings
        Its settings; the others are its defaults.

    Examples
    --------
    >>> make("ease", regularization=200.0)
    <EASE(regularization=200.0), not fitted>
    >>> make("als", factors=32).settings["factors"]
    32
    >>> make("oracle")
    Traceback (most recent call last):
        ...
    ValueError: there is no baseline 'oracle': there are popularity, svd, mf, pmf, fm, ncf, vae, ...
    """
    spec = find(name)
    ours = _OURS.get(name)
    if ours is not None:
        return ours(**resolve_settings(name, spec.defaults, settings))
    return Baseline(name, timeout=timeout, where=where, **settings)
