"""Evaluation on what was held out: interactions as the paper does, or comparisons."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core.types import Doubles
from sadrec.data import Comparisons, Interactions
from sadrec.evaluation.comparisons import evaluate_comparisons
from sadrec.evaluation.metrics import pairs, sampled
from sadrec.evaluation.metrics.pairs import RatedPairs, mean_by
from sadrec.evaluation.metrics.sampled import Contest
from sadrec.evaluation.plan import Plan, in_ids_of
from sadrec.evaluation.result import Evaluation, mean_and_error, median_and_error

_RATED = (pairs.mean_margin, pairs.match, pairs.unequal_accuracy, pairs.rated_brier, pairs.rated_log_loss)
_SAMPLED = (sampled.m1, sampled.m2, sampled.m_margin, sampled.sampled_auc, sampled.brier, sampled.log_loss)
_PAIR_MEASURES: Mapping[str, Callable[[RatedPairs], Doubles]] = {measure.__name__: measure for measure in _RATED}
_CONTEST_MEASURES: Mapping[str, Callable[[Contest], Doubles]] = {measure.__name__: measure for measure in _SAMPLED}
_OF_PROBABILITY = ("brier", "log_loss", "rated_brier", "rated_log_loss")
_CONSISTENCY = ("mean_margin", "match", "match_per_user", "unequal_accuracy")
MEASURES = (*_CONSISTENCY, *_CONTEST_MEASURES, "rated_brier", "rated_log_loss")


def evaluate(
    model: object,
    train: Interactions | Comparisons,
    held_out: Interactions | Comparisons,
    seed: int = 0,
    *,
    sampled: int = 100,
    cut: int = 20,
    num_threads: int = 0,
    show_progress: bool = False,
) -> Evaluation:
    """Evaluate a model on held-out interactions as the paper does, with its corrections; or on held-out comparisons.

    Consistency: the held-out item against the items the user kept in training, ordered by the user's own ratings.
    Recommendation: the held-out item among ``sampled`` items the user met neither in training nor in the held-out part,
    drawn by (seed, user row) and the same for every model. Every figure is an average inside the user first, then over
    users.

    Parameters
    ----------
    model
        A model with ``margins(user, items, rivals)`` or ``scores(users)``; see :mod:`sadrec.evaluation.protocol`.
    train, held_out
        The two parts of a split, or two published files. What has a user or an item that only the held-out part has is
        left out, with a warning. A user may have several held-out items; users without one are not evaluated.
        Comparisons are handed to :func:`~sadrec.evaluation.evaluate_comparisons`, which needs none of the other
        arguments.
    seed
        What the sampled items are keyed by.
    sampled, cut
        How many items are sampled, and how many of them must not be ahead. A user who has met so much that fewer are
        left gets all of them and a cut in proportion.
    num_threads
        Threads for models made of factor matrices; 0 means all cores. The result does not depend on it.
    show_progress
        Show a progress bar.

    Returns
    -------
    Evaluation
        A mapping, shares as 0..1, with ``.errors`` (standard errors over users), ``.counts`` and ``.per_user``:
        ``mean_margin``, ``match``, ``match_per_user`` (the median), ``unequal_accuracy``, ``m1``, ``m2``; ``m_margin``
        (M2's comparisons ranked by mean margin: no ties); ``sampled_auc``, ``brier`` and ``log_loss`` over held-out
        against sampled items, the event that SAD and BPR give a probability for; ``rated_brier`` and
        ``rated_log_loss`` over unequally rated pairs. Figures of consistency are NaN for data without ratings, those
        of probability for models without ``probability``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from sadrec.data import Interactions
    >>> data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 6, (30, 40))))
    >>> train, held_out = data.leave_one_out(seed=0)
    >>> class Silent:
    ...     users, items = data.users, data.items
    ...     def scores(self, users):
    ...         return np.zeros((len(users), 40))
    >>> result = evaluate(Silent(), train, held_out)
    >>> result["match"], result["unequal_accuracy"]
    (0.0, 0.5)
    """
    if isinstance(held_out, Comparisons) or isinstance(train, Comparisons):
        if not isinstance(held_out, Comparisons) or not isinstance(train, Comparisons):
            raise TypeError("one part is interactions and the other comparisons; give the two parts of one split")
        return evaluate_comparisons(model, held_out)
    held_out = in_ids_of(train, held_out)
    plan = Plan(model, train, held_out, seed, sampled, cut)
    parts = list(plan.each(partial(_measured, plan), num_threads, show_progress))
    per_user = {
        name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0)
        for name in (*_PAIR_MEASURES, *_CONTEST_MEASURES)
    }
    return _summary(per_user, train.users[plan.rows])


def _summary(per_user: dict[str, Doubles], users: NDArray[Any]) -> Evaluation:
    figures, errors, counts = {}, {}, {}
    for name in MEASURES:
        summarise = median_and_error if name == "match_per_user" else mean_and_error
        of = "match" if name == "match_per_user" else name
        figures[name], errors[name], counts[name] = summarise(per_user[of])
    return Evaluation(figures, errors, counts, users, per_user)


def _measured(plan: Plan, rows: NDArray[Any]) -> dict[str, Doubles]:
    """Return every measure of the users in ``rows``, one value each."""
    rated, contest, user = plan.compared(rows)
    figures: dict[str, Doubles] = {}
    for name, measure in _PAIR_MEASURES.items():
        defined = plan.train.has_ratings and (name not in _OF_PROBABILITY or rated.probability is not None)
        figures[name] = measure(rated) if defined else np.full(rated.cases, np.nan)
    for name, rank in _CONTEST_MEASURES.items():
        defined = name not in _OF_PROBABILITY or contest.probability is not None
        figures[name] = rank(contest) if defined else np.full(contest.cases, np.nan)
    if rated.cases == len(rows):
        return figures
    there = {name: ~np.isnan(values) for name, values in figures.items()}
    return {name: mean_by(user[there[name]], values[there[name]], len(rows)) for name, values in figures.items()}
