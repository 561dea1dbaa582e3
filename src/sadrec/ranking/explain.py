"""Explanations of preferences: contributions of factors, and the liked items that support each side."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec._core.check import positions, whole
from sadrec._core.types import Doubles, Positions
from sadrec._core.words import one_line, titled
from sadrec.ranking.fold_in import liked_pairs, pair_design
from sadrec.ranking.logistic import Design, check_regularization, curvature
from sadrec.ranking.pairs import contributions, sigmoid
from sadrec.ranking.parameters import Parameters, User, item_positions, user_vector


@dataclass(frozen=True, eq=False)
class Explanation:
    """An explanation of the preference of a user for an item over a rival.

    Attributes
    ----------
    item, rival
        Positions, or the labels given.
    contributions
        One number per factor, and a last one for the bias if the model has one.
    margin
        ``x_uij``: the sum of the contributions and of ``pair_part``.
    has_bias
        Whether the last contribution is the bias.
    liked
        What the user liked, most in favour of the item first; empty if it was not given.
    influences
        By how much the margin would rise if the liked item counted once more (to first order), one per liked item.
    probability
        That the item is preferred; ``sigmoid(margin)`` where it is not given.
    by_features
        What the margin would be by the features of item and rival alone; None for a model without.
    columns
        What each column of the features adds to that, with its name, largest first; they sum to ``by_features``.
    pair_part
        What the comparisons of these two items, and those of the user, add to the factors; 0 for a model without.

    Examples
    --------
    >>> Explanation("tea", "ale", np.array([0.5, 1.0]), 1.5, False, np.array(["milk", "wine"]), np.array([0.2, -0.1]))
    tea over ale: margin 1.5 (82 %)
      factors  1: +1, 0: +0.5
      for tea: milk +0.2
      for ale: wine -0.1
    """

    item: Any
    rival: Any
    contributions: Doubles
    margin: float
    has_bias: bool = False
    liked: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    influences: Doubles = field(default_factory=lambda: np.empty(0))
    probability: float = np.nan
    by_features: float | None = None
    columns: tuple[tuple[str, float], ...] = ()
    pair_part: float = 0.0

    def __post_init__(self) -> None:
        if np.isnan(self.probability):
            object.__setattr__(self, "probability", float(sigmoid(self.margin)))

    @property
    def bias(self) -> float:
        """The contribution of the bias; 0 for a model without one."""
        return float(self.contributions[-1]) if self.has_bias else 0.0

    def factors(self, N: int = 5) -> list[tuple[int, float]]:
        """Return the N factors that contribute most, in either direction, with what they contribute."""
        own = self.contributions[: self.contributions.size - self.has_bias]
        return [(int(h), float(own[h])) for h in np.argsort(-np.abs(own), kind="stable")[: whole(N, "N")]]

    def supporters(self, N: int = 5) -> list[tuple[Any, float]]:
        """Return the liked items that support the item most, with their influence, which is positive."""
        return self._votes(np.flatnonzero(self.influences > 0), N)

    def opponents(self, N: int = 5) -> list[tuple[Any, float]]:
        """Return the liked items that support the rival most, with their influence, which is negative."""
        return self._votes(np.flatnonzero(self.influences < 0)[::-1], N)

    def named(self, titles: Mapping[Any, str]) -> "Explanation":
        """Return the same with titles (:class:`sadrec.Items`, or a mapping) in place of ids."""
        item, rival = titled((self.item, self.rival), titles).tolist()
        return replace(self, item=item, rival=rival, liked=titled(self.liked, titles))

    def _votes(self, places: Positions, N: int) -> list[tuple[Any, float]]:
        return [(self.liked[n], float(self.influences[n])) for n in places[: whole(N, "N")]]

    def __repr__(self) -> str:
        item, rival = one_line(self.item), one_line(self.rival)
        lines = [f"{item} over {rival}: margin {self.margin:.3g} ({100 * self.probability:.0f} %)"]
        factors = [f"{h}: {value:+.3g}" for h, value in self.factors() if value]
        if factors:
            lines.append("  factors  " + ", ".join(factors))
        if self.has_bias:
            lines.append(f"  bias {self.bias:+.3g}")
        if self.pair_part:
            lines.append(f"  own comparisons {self.pair_part:+.3g}")
        if self.by_features is not None:
            shown = "".join(f", {one_line(name)} {value:+.3g}" for name, value in self.columns[:3])
            lines.append(f"  features {self.by_features:+.3g}, own {self.margin - self.by_features:+.3g}{shown}")
        for name, votes in ((item, self.supporters(3)), (rival, self.opponents(3))):
            if votes:
                lines.append(f"  for {name}: " + ", ".join(f"{one_line(liked)} {value:+.3g}" for liked, value in votes))
        return "\n".join(lines)


def explain(
    parameters: Parameters,
    user: User,
    item: int,
    rival: int,
    *,
    liked: ArrayLike | None = None,
    regularization: float = 0.01,
    negatives: int | None = None,
) -> Explanation:
    """Explain a preference by its factors and, where ``liked`` is given, by the items that the user liked.

    A user's vector is where ``sum_i w_i [ mean_j log sigmoid(x_ij) ] - penalty`` is highest, i over the liked items and
    j over their negatives (see :func:`~sadrec.ranking.fold_in.fold_in`), with all ``w_i = 1``. When ``w_i`` rises, the
    vector moves by ``C g_i``: g_i the gradient of the item's own term, C the covariance of Laplace's approximation. The
    influence of liked item i is what that movement does to the margin.

    >>> model = Parameters(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    >>> explain(model, 0, 1, 0, liked=[2])
    1 over 0: margin 1 (73 %)
      factors  1: +2, 0: -1
      for 1: 2 +0.513
    """
    xi = user_vector(parameters, user)
    i, j = (int(positions(value, parameters.n_items, name)) for value, name in ((item, "item"), (rival, "rival")))
    parts = contributions(parameters, xi, i, j)
    liked_items, influence = np.empty(0, np.int64), np.empty(0)
    if liked is not None:
        liked_items = np.unique(item_positions(parameters, liked, "liked"))
        check_regularization(regularization)
        influence = np.zeros(liked_items.size)
        if 0 < liked_items.size < parameters.n_items:
            winners, losers, each = liked_pairs(parameters, liked_items, negatives)
            pairs = pair_design(parameters, winners, losers)
            wanted = pair_design(parameters, np.array([i]), np.array([j]))[0][0]
            influence = _influences(xi.astype(np.float64), *pairs, wanted, each, regularization)
        order = np.argsort(-influence, kind="stable")
        liked_items, influence = liked_items[order], influence[order]
    return Explanation(i, j, parts, float(parts.sum()), parameters.item_bias is not None, liked_items, influence)


def _influences(
    xi: Doubles, design: Design, offset: Doubles, wanted: Doubles, each: int, regularization: float
) -> Doubles:
    """Return the change of the margin ``wanted . xi`` if a liked item, which has ``each`` pairs, counted once more."""
    items = len(design) // each
    weight = np.full(len(design), 1.0 / each)
    shape = curvature(xi, design, offset, weight, np.full(xi.size, regularization * items))
    moved = design @ np.linalg.solve(shape, wanted)
    scale = weight * sigmoid(-(design @ xi + offset))
    return np.asarray((scale * moved).reshape(items, each).sum(axis=1))
