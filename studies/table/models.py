"""The models of the study: what each is called, trained on, and which settings are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sadrec import BPR, SAD, Interactions
from sadrec.evaluation import grid_points
from studies._tools import settings_of
from studies.baselines import BASELINES, make

OURS = {"sad": SAD, "bpr": BPR}
_DRAWN = "every interaction against {negative} drawn uniformly from those the user has not touched"

# Tried in this order for SAD and BPR alike: from much data per user and item to little.
_TRIALS: tuple[Mapping[str, Any], ...] = (
    {"iterations": 30, "learning_rate": 0.1, "regularization": 0.005, "bias": True},
    {"iterations": 100, "learning_rate": 0.05, "regularization": 0.035, "bias": True},
    {"iterations": 30, "learning_rate": 0.1, "regularization": 0.01, "bias": True},
    {"iterations": 60, "learning_rate": 0.1, "regularization": 0.005, "bias": True},
    {"iterations": 100, "learning_rate": 0.05, "regularization": 0.04, "bias": True},
    {"iterations": 60, "learning_rate": 0.05, "regularization": 0.02, "bias": True},
)
_RIVAL_REGULARIZATION = 0.001


@dataclass(frozen=True)
class StudyModel:
    """One row of the table.

    Attributes
    ----------
    name
        What the command line calls it: "sad", "bpr" or a baseline.
    title
        What the table calls it.
    paper
        What the paper calls it, or None.
    library
        Where it comes from.
    factors
        The length of its vectors, or None where it has none or its own default is kept.
    fixed
        Settings given by hand; they are not searched over.
    """

    name: str
    title: str
    paper: str | None
    library: str
    factors: int | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def make(self, settings: Mapping[str, Any] | None = None) -> Any:
        """Make the model, not fitted, with chosen settings; those given by hand come first."""
        chosen = {**(settings or {}), **self.fixed}
        if self.factors is not None:
            chosen["factors"] = self.factors
        if self.name in OURS:
            # the paper masks ratings: their order is not for training; and its measures count every pair the same
            return OURS[self.name]().set_params(**{"user_balance": 0.0, "loss": "pairwise", **chosen})
        return make(self.name, **chosen)

    def check(self, settings: Mapping[str, Any], train: Interactions) -> None:
        """Refuse settings that the model does not have or cannot take, before anything is computed.

        Raises
        ------
        ValueError
            Naming the model, the setting and what it may be.
        """
        try:
            self.resolved(settings, train)
        except ValueError as error:
            raise ValueError(f"{self.name}: {str(error).removeprefix(f'{self.name}: ')}") from None

    def trained_on(self, settings: Mapping[str, Any], train: Interactions) -> str:
        """Say what the model is trained on."""
        if self.name not in OURS:
            return BASELINES[self.name].trained_on({**settings, **self.fixed})
        candidates = self.resolved(settings, train)["negative_candidates"]
        return _DRAWN.format(negative="an item" if candidates == 1 else f"the hardest of {candidates} items")

    def resolved(self, settings: Mapping[str, Any], train: Interactions) -> dict[str, Any]:
        """Return the settings in full: given, chosen, and the defaults for the others."""
        return settings_of(self.make(settings), train)

    def points(self, trials: int, seed: int = 0) -> list[dict[str, Any]]:
        """Return the settings to try, the first being what is used when there is nothing to choose.

        SAD and BPR share a declared list; a baseline's defaults come first, then points drawn at random from its grid
        (the paper's, for the paper's models).
        """
        if self.name in OURS:
            extra = {"rival_regularization": _RIVAL_REGULARIZATION} if self.name == "sad" else {}
            return _distinct([{**point, **extra, **self.fixed} for point in _TRIALS])[:trials]
        spec = BASELINES[self.name]
        default = {name: spec.defaults[name] for name in spec.grid}
        drawn = grid_points(spec.grid, 4 * trials, seed) if spec.grid else []
        # a grid of its own order would be cut at one end: points come in a random order
        order = np.random.default_rng(seed).permutation(len(drawn)).tolist()
        return _distinct([{**point, **self.fixed} for point in [default, *(drawn[at] for at in order)]])[:trials]


def _distinct(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    distinct: list[dict[str, Any]] = []
    for point in points:
        if point not in distinct:
            distinct.append(point)
    return distinct


def study_models(
    baselines: Sequence[str], factors: Sequence[int], given: Mapping[str, Mapping[str, Any]] | None = None
) -> list[StudyModel]:
    """Return the rows of the table: SAD and BPR for every number of factors, popularity, the baselines.

    Parameters
    ----------
    baselines
        Names of :data:`studies.baselines.BASELINES`; popularity is always there.
    factors
        Numbers of factors for SAD and BPR; settings are searched with the first.
    given
        Settings by model that are not searched over.
    """
    given = given or {}
    if not factors or min(factors) < 1:
        raise ValueError(f"factors must be whole numbers, at least 1, not {list(factors)}")
    for name in (*baselines, *given):
        if name not in BASELINES and name not in OURS:
            raise ValueError(f"there is no model {name!r}: there are {', '.join((*OURS, *BASELINES))}")
    rows = [
        StudyModel(name, f"{title} (k={k})", title, "sadrec", k, given.get(name, {}))
        for name, title in zip(OURS, ("SAD", "BPR"), strict=True)
        for k in dict.fromkeys(factors)
    ]
    wanted = [name for name in BASELINES if name == "popularity" or name in baselines]
    for name in wanted:
        spec = BASELINES[name]
        rows.append(StudyModel(name, spec.title, spec.paper, spec.library, None, given.get(name, {})))
    return rows
