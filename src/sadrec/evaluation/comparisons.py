"""Evaluation on stated comparisons: how often, and how surely, the winner is named."""

from dataclasses import replace
from inspect import signature

import numpy as np

from sadrec._core.types import Doubles
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
        and ``log_loss`` of P(winner preferred), NaN for a model without ``probability``. These are of comparisons that
        are no ties. Where there are ties, ``outcome_log_loss`` is that of win, loss and tie, of all comparisons; NaN
        for a model that has learnt no ties. ``.counts`` are comparisons; ``.per_row`` has the value of each of them,
        ``.per_user`` the means of the judges.

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
    decided = held_out.decided
    margin, p = margins_and_probabilities(model, decided)
    nothing = np.full(len(margin), np.nan)
    result = _summary(
        {
            "accuracy": (margin > 0) + 0.5 * np.equal(margin, 0),
            "mean_margin": margin,
            "brier": nothing if p is None else (1.0 - p) ** 2,
            "log_loss": nothing if p is None else -np.log(np.maximum(p, FLOOR)),
        },
        decided,
    )
    if held_out.tied is None:
        return result
    outcomes = _summary({"outcome_log_loss": _outcome_loss(model, held_out, p)}, held_out)
    return replace(
        result,
        figures={**result.figures, **outcomes.figures},
        errors={**result.errors, **outcomes.errors},
        counts={**result.counts, **outcomes.counts},
        per_row={**result.per_row, **outcomes.per_row},
    )


def _outcome_loss(model: object, held_out: Comparisons, p: Doubles | None) -> Doubles:
    """Return the log loss of win, loss and tie; ``p`` are the probabilities of the winners of what is no tie."""
    loss, tied = np.full(len(held_out), np.nan), np.asarray(held_out.tied)
    if p is not None and isinstance(model, HasProbability) and "outcome" in signature(model.probability).parameters:
        sides = (held_out.items[side] for side in (held_out.winner_index, held_out.loser_index))
        try:
            tie = np.asarray(model.probability(held_out.users[held_out.user_index], *sides, outcome="tie"))  # type: ignore[call-arg]
        except ValueError:  # it has learnt none
            return loss
        loss[tied] = -np.log(np.maximum(tie[tied], FLOOR))
        loss[~tied] = -np.log(np.maximum(p * (1 - tie[~tied]), FLOOR))
    return loss


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


def _summary(per_row: dict[str, Doubles], held_out: Comparisons) -> Evaluation:
    weight = np.ones(len(held_out)) if held_out.weight is None else np.asarray(held_out.weight, dtype=np.float64)
    judges, judge = np.unique(held_out.user_index, return_inverse=True)
    total = np.bincount(judge, weights=weight)
    figures, errors, counts, per_user = {}, {}, {}, {}
    for name, value in per_row.items():
        _, errors[name], counts[name] = mean_and_error(value)
        figures[name] = float(value @ weight / weight.sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            per_user[name] = np.bincount(judge, weights=value * weight) / total
    return Evaluation(figures, errors, counts, held_out.users[judges], per_user, per_row)
