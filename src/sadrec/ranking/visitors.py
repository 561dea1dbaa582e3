"""Visitors: users who were not in the fit, with a vector from a few likes or comparisons, and its covariance."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sadrec._core.types import Doubles, Positions
from sadrec.ranking.belief import Belief, Gaussian
from sadrec.ranking.fold_in import fold_in, fold_in_comparisons
from sadrec.ranking.logistic import Estimate
from sadrec.ranking.parameters import average_user


@dataclass(frozen=True, eq=False)
class Visitors:
    """Computes the vectors of visitors, with the items and the penalties of one fit.

    Attributes
    ----------
    belief
        Of the fit.
    regularization
        The l2 penalty of the fit, above 0.
    balance
        The power by which users with many interactions count less, and over all users the number of interactions and
        the sum of their weights before scaling.
    """

    belief: Belief
    regularization: float = 0.01
    balance: tuple[float, int, float] = (0.0, 0, 0.0)

    def from_likes(self, liked: Positions) -> Estimate:
        """Return the vector of a visitor who liked the items at some positions."""
        penalty = self.regularization / self._weight_of(len(liked))
        return fold_in(self.belief.parameters, liked, regularization=penalty, spread=self._spread)

    def from_comparisons(self, winners: Positions, losers: Positions, weight: ArrayLike | None) -> Estimate:
        """Return the vector of a visitor who preferred the winners to the losers."""
        spread = self._user_deviation if self._spread is None else self._spread
        penalty: Any = {"regularization": self.regularization, "spread": spread}
        return fold_in_comparisons(self.belief.parameters, winners, losers, weight=weight, **penalty)

    def held_to(self, centre: Doubles, visitor: Estimate, answers: int, compared: bool) -> Estimate:
        """Return a visitor's vector held to ``centre``, the prediction of features, in place of 0 or the average user.

        It moves to first order: by its covariance times the change of the gradient, one step of Newton's method.
        """
        deviation = self._user_deviation if compared and self._spread is None else self._spread
        if deviation is not None:
            pull = (centre - average_user(self.belief.parameters)) / np.maximum(deviation, 1e-4) ** 2
        else:
            weight = 1.0 if compared else self._weight_of(answers)
            pull = 2 * self.regularization * answers / weight * centre
        vector = visitor.vector + visitor.covariance @ pull
        return replace(visitor, vector=vector)

    def covariance(self, visitor: Estimate, compared: bool) -> Doubles:
        """Return the covariance of a visitor's vector, who is one of the population, too."""
        covariance = visitor.covariance
        if compared or self._spread is not None:
            return covariance
        # the l2 penalty of likes says little about how people differ
        covariance = covariance @ np.linalg.solve(covariance + self.population, self.population)
        return np.asarray((covariance + covariance.T) / 2)

    @cached_property
    def population(self) -> Doubles:
        """The covariance of the users' vectors: the prior of a visitor without data."""
        if self._spread is not None:
            return np.diag(self._spread**2)
        vectors = self.belief.parameters.user_factors
        if len(vectors) < 2:
            return np.eye(vectors.shape[1]) / (2 * self.regularization)
        return np.atleast_2d(np.cov(vectors.astype(np.float64), rowvar=False))

    @property
    def _spread(self) -> Doubles | None:
        """The standard deviation of users in each factor, where the fit has learnt it."""
        return self.belief.population[1] if isinstance(self.belief, Gaussian) else None

    @cached_property
    def _user_deviation(self) -> Doubles | None:
        """The standard deviation of the users' vectors in each factor; None with fewer than two users."""
        vectors = self.belief.parameters.user_factors
        return None if len(vectors) < 2 else np.asarray(vectors.std(axis=0, dtype=np.float64))

    def _weight_of(self, liked: int) -> float:
        """Return the weight in training of an interaction of a user with ``liked`` of them."""
        power, total, weighed = self.balance
        if not power:
            return 1.0
        raw = max(1.0, liked) ** -power
        return float(raw * (total + liked) / (weighed + liked * raw))  # balance() of everybody and of this one
