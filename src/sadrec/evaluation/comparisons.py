"""Evaluation on stated comparisons: how often, and how surely, the winner is named."""

import numpy as np

from sadrec._types import Doubles
from sadrec.data import Comparisons
from sadrec.evaluation.metrics.pairs import FLOOR
from sadrec.evaluation.protocol import HasProbability, source_of
from sadrec.evaluation.result import Evaluation, mean_and_error

# Comparisons of one judge that are looked at together: bounds the block of margins.
_AT_ONCE = 512


def evaluate_comparisons(model: object, held_out: Comparisons) -> Evaluation:
    r"""Evaluate a model on comparisons it was not trained on.

    Every comparison counts by its weight; comparisons are pooled over judges (a judge who made one says little alone).

    Parameters
    ----------
    model
        A model with ``margins(user, items, rivals)`` or ``scores(users)``; see :mod:`sadrec.evaluation.protocol`.
    held_out
        Comparisons of users and items the model knows.

    Returns
    -------
    Evaluation
        ``accuracy``: share with :math:`x_{uwl} > 0`, a margin of exactly 0 counting half; ``mean_margin``; ``brier``
        and ``log_loss`` of P(winner preferred), NaN for a model without ``probability``. ``.counts`` are comparisons;
        ``.per_row`` has the value of each of them, ``.per_user`` the means of the judges.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"user": ["ann", "ann"], "winner": ["tea", "ale"], "loser": ["ale", "rum"]})
    >>> held_out = Comparisons.from_frame(frame)
    >>> class Fixed:
    ...     users, items = held_out.users, held_out.items
    ...     def scores(self, users):
    ...         return np.array([[1.0, 2.0, 3.0]])  # ale, rum, tea
    >>> evaluate_comparisons(Fixed(), held_out)["accuracy"]
    0.5
    """
    return _summary(*margins_and_probabilities(model, held_out), held_out)


def margins_and_probabilities(model: object, held_out: Comparisons) -> tuple[Doubles, Doubles | None]:
    """Return the margin of each comparison's winner and its probability (None for a model without)."""
    if len(held_out) == 0:
        raise ValueError("there are no comparisons to evaluate on")
    source = source_of(model, held_out)
    margin, probability = np.empty(len(held_out)), np.empty(len(held_out))
    order = np.argsort(held_out.user_index, kind="stable")
    starts = np.flatnonzero(np.diff(held_out.user_index[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        row = int(held_out.user_index[group[0]])
        block = source.block(np.array([row]))
        for start in range(0, len(group), _AT_ONCE):
            part = group[start : start + _AT_ONCE]
            winners, left = np.unique(held_out.winner_index[part], return_inverse=True)
            losers, right = np.unique(held_out.loser_index[part], return_inverse=True)
            margin[part] = block(0, winners, losers)[left, right]
        if isinstance(model, HasProbability):
            sides = (held_out.items[side[group]] for side in (held_out.winner_index, held_out.loser_index))
            probability[group] = model.probability(held_out.users[row], *sides)
    if not np.isfinite(margin).all():
        raise ValueError("the model gives margins that are not finite: its training has diverged")
    return margin, probability if isinstance(model, HasProbability) else None


def _summary(margin: Doubles, p: Doubles | None, held_out: Comparisons) -> Evaluation:
    nothing = np.full(len(margin), np.nan)
    per_row = {
        "accuracy": (margin > 0) + 0.5 * np.equal(margin, 0),
        "mean_margin": margin,
        "brier": nothing if p is None else (1.0 - p) ** 2,
        "log_loss": nothing if p is None else -np.log(np.maximum(p, FLOOR)),
    }
    weight = np.ones(len(margin)) if held_out.weight is None else np.asarray(held_out.weight, dtype=np.float64)
    judges, judge = np.unique(held_out.user_index, return_inverse=True)
    total = np.bincount(judge, weights=weight)
    figures, errors, counts, per_user = {}, {}, {}, {}
    for name, value in per_row.items():
        _, errors[name], counts[name] = mean_and_error(value)
        figures[name] = float(value @ weight / weight.sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            per_user[name] = np.bincount(judge, weights=value * weight) / total
    return Evaluation(figures, errors, counts, held_out.users[judges], per_user, per_row)
