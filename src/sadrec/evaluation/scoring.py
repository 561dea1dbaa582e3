"""One number to choose settings by: how it is validated, computed, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sadrec.data import Interactions
from sadrec.evaluation.leave_one_out import MEASURES, evaluate
from sadrec.evaluation.likelihood import log_likelihood
from sadrec.evaluation.measures import measure_of
from sadrec.evaluation.top_n import TOP_N_MEASURES, evaluate_top_n

_LIKELIHOODS = ("log_likelihood", "validation_log_likelihood")


@dataclass(frozen=True)
class Scorer:
    """What settings are chosen by.

    Attributes
    ----------
    name
        ``"log_likelihood"``: goodness of fit on the very data the model is trained on, as in the paper;
        ``"validation_log_likelihood"``: the same on held-out interactions; a measure of
        :func:`~sadrec.evaluation.evaluate` (``"m1"``, ...); or one of :func:`~sadrec.evaluation.evaluate_top_n` with a
        length (``"ndcg@10"``).
    test
        Share held out for measures of lists and for the validation log likelihood.

    Examples
    --------
    >>> Scorer("ndcg@10").better, Scorer("log_loss").better
    (1, -1)
    """

    name: str
    test: float = 0.1

    def __post_init__(self) -> None:
        base, _, length = self.name.partition("@")
        lists = base in TOP_N_MEASURES and (not length or (length.isdecimal() and int(length) > 0))
        if self.name not in (*_LIKELIHOODS, *MEASURES) and not lists:
            raise ValueError(
                f"cannot select by {self.name!r}; choose {', '.join(_LIKELIHOODS)}, one of {', '.join(MEASURES)}, or "
                f"one of {', '.join(TOP_N_MEASURES)} with a length such as 'ndcg@10'"
            )
        if not self.better:
            raise ValueError(f"settings cannot be chosen by {self.name!r}: more of it is neither better nor worse")

    @property
    def better(self) -> int:
        """1 when more is better, -1 when less is."""
        return 1 if self.name in _LIKELIHOODS else measure_of(self.name).better

    def split(self, data: Interactions, seed: int) -> tuple[Interactions, Interactions]:
        """Divide data into what is fitted and what is looked at afterwards."""
        if self.name == "log_likelihood":
            return data, data
        if self.name in MEASURES:
            return data.leave_one_out(seed=seed)
        return data.split(test=self.test, seed=seed)

    def score(self, model: Any, train: Interactions, held_out: Interactions, seed: int) -> tuple[float, float]:
        """Return the score of a fitted model and its standard error over users (NaN where there is none)."""
        if self.name == "log_likelihood":
            return log_likelihood(model, train, seed=seed), float("nan")
        if self.name == "validation_log_likelihood":
            return log_likelihood(model, held_out, train=train, seed=seed), float("nan")
        if self.name in MEASURES:
            result = evaluate(model, train, held_out, seed)
            return result[self.name], result.errors.get(self.name, float("nan"))
        base, _, length = self.name.partition("@")
        result = evaluate_top_n(model, train, held_out, int(length or 10), seed=seed)
        return result[base], result.errors.get(base, float("nan"))
