"""The paper's evaluation: one interaction of every user held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sadrec.data import Interactions
from sadrec.evaluation._parallel import over_blocks, threads_of
from sadrec.evaluation.metrics.brier import brier
from sadrec.evaluation.metrics.contest import Contest
from sadrec.evaluation.metrics.log_loss import log_loss
from sadrec.evaluation.metrics.m1 import m1
from sadrec.evaluation.metrics.m2 import m2
from sadrec.evaluation.metrics.m_margin import m_margin
from sadrec.evaluation.metrics.match import match
from sadrec.evaluation.metrics.mean_margin import mean_margin
from sadrec.evaluation.metrics.pairs import Floats, Pairs
from sadrec.evaluation.metrics.sampled_auc import sampled_auc
from sadrec.evaluation.metrics.sampled_brier import sampled_brier
from sadrec.evaluation.metrics.sampled_log_loss import sampled_log_loss
from sadrec.evaluation.metrics.unequal_accuracy import unequal_accuracy
from sadrec.evaluation.result import Evaluation, mean_and_error, median_and_error
from sadrec.evaluation.sampling import uniforms, unmet_items
from sadrec.evaluation.sources import Source, source_of

_USERS_PER_BLOCK = 64
_PAIR_MEASURES: Mapping[str, Callable[[Pairs], Floats]] = {
    "mean_margin": mean_margin,
    "match": match,
    "unequal_accuracy": unequal_accuracy,
    "brier": brier,
    "log_loss": log_loss,
}
_CONTEST_MEASURES: Mapping[str, Callable[[Contest], Floats]] = {
    "m1": m1,
    "m2": m2,
    "m_margin": m_margin,
    "sampled_auc": sampled_auc,
    "sampled_brier": sampled_brier,
    "sampled_log_loss": sampled_log_loss,
}
_OF_PROBABILITY = ("brier", "log_loss", "sampled_brier", "sampled_log_loss")
MEASURES = (
    "mean_margin",
    "match",
    "match_per_user",
    "unequal_accuracy",
    "m1",
    "m2",
    "m_margin",
    "brier",
    "log_loss",
    "sampled_auc",
    "sampled_brier",
    "sampled_log_loss",
)


def evaluate(
    model: object,
    train: Interactions,
    held_out: Interactions,
    seed: int = 0,
    *,
    sampled: int = 100,
    cut: int = 20,
    num_threads: int = 0,
    progress: bool = False,
    factors: bool = True,
) -> Evaluation:
    """Evaluate a model on held-out interactions as the paper does, with its corrections.

    Consistency: the held-out item against the items the user kept in training, ordered by the user's own ratings.
    Recommendation: the held-out item among ``sampled`` items the user met neither in training nor in the held-out part,
    drawn by (seed, user row) and the same for every model. Every figure is an average inside the user first, then over
    users.

    Parameters
    ----------
    model
        A model with ``margins(user, items, rivals)`` or ``scores(users)``; see :mod:`sadrec.evaluation.protocol`.
    train, held_out
        The two parts of a split: same ids, same shape. A user may have several held-out items; users without one are
        not evaluated.
    seed
        What the sampled items are keyed by.
    sampled, cut
        How many items are sampled, and how many of them must not be ahead. A user who has met so much that fewer are
        left gets all of them and a cut in proportion.
    num_threads
        Threads for models made of factor matrices; 0 means all cores. The result does not depend on it.
    progress
        Show a progress bar.
    factors
        Use ``model.parameters`` directly where there are some; without it the verbs of the protocol are used.

    Returns
    -------
    Evaluation
        A mapping, shares as 0..1, with ``.errors`` (standard errors over users), ``.counts`` and ``.per_user``:
        ``mean_margin``, ``match``, ``match_per_user`` (the median), ``unequal_accuracy``, ``m1``, ``m2``; ``m_margin``
        (M2's comparisons ranked by mean margin: no ties); ``brier`` and ``log_loss`` over unequally rated pairs;
        ``sampled_auc``, ``sampled_brier`` and ``sampled_log_loss`` over held-out against sampled items. Figures of
        consistency are NaN for data without ratings, those of probability for models without ``probability``.

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
    check_split(train, held_out)
    if sampled < 1 or not 0 < cut <= sampled:
        raise ValueError(f"need sampled >= 1 and 0 < cut <= sampled, got sampled={sampled} and cut={cut}")
    source = source_of(model, train, factors=factors)
    plan = _Plan(source, train, held_out, union_pattern(train, held_out), seed, sampled, cut)
    rows = np.flatnonzero(np.diff(held_out.matrix.indptr))
    blocks = [rows[start : start + _USERS_PER_BLOCK] for start in range(0, len(rows), _USERS_PER_BLOCK)]
    threads = threads_of(num_threads) if source.concurrent else 1
    parts = list(over_blocks(plan.measured, blocks, threads, progress, "evaluate"))
    per_user = {
        name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0)
        for name in (*_PAIR_MEASURES, *_CONTEST_MEASURES)
    }
    return _summary(per_user, train.users[rows])


def _summary(per_user: dict[str, Floats], users: NDArray[Any]) -> Evaluation:
    figures, errors, counts = {}, {}, {}
    for name in MEASURES:
        summarise = median_and_error if name == "match_per_user" else mean_and_error
        of = "match" if name == "match_per_user" else name
        figures[name], errors[name], counts[name] = summarise(per_user[of])
    return Evaluation(figures, errors, counts, users, per_user)


def check_split(train: Interactions, test: Interactions) -> None:
    """Refuse two parts that are not of one split."""
    same = (
        train.matrix.shape == test.matrix.shape
        and np.array_equal(train.users, test.users)
        and np.array_equal(train.items, test.items)
    )
    if not same:
        raise ValueError(
            f"the two parts have shapes {train.matrix.shape} and {test.matrix.shape} or different ids; make them with "
            "data.leave_one_out() or data.split(), whose parts keep the ids, shape and order of the data"
        )


def union_pattern(*parts: Interactions) -> sparse.csr_matrix:
    """Return a matrix whose stored entries are all interactions of ``parts``, sorted within rows."""
    total = None
    for part in parts:
        matrix = part.matrix
        ones = np.ones(len(matrix.indices), dtype=np.int32)
        pattern = sparse.csr_matrix((ones, matrix.indices, matrix.indptr), shape=matrix.shape)
        total = pattern if total is None else total + pattern
    if total is None:
        raise ValueError("need at least one part")
    total.sort_indices()
    return total


@dataclass(frozen=True)
class _Plan:
    source: Source
    train: Interactions
    held_out: Interactions
    met: sparse.csr_matrix
    seed: int
    sampled: int
    cut: int

    def measured(self, rows: NDArray[Any]) -> dict[str, Floats]:
        """Return every measure of the users in ``rows``, one value each."""
        pairs, contest, user = self.compared(rows)
        figures: dict[str, Floats] = {}
        for name, measure in _PAIR_MEASURES.items():
            known = self.train.has_ratings and (name not in _OF_PROBABILITY or pairs.probability is not None)
            figures[name] = measure(pairs) if known else np.full(pairs.cases, np.nan)
        for name, rank in _CONTEST_MEASURES.items():
            known = name not in _OF_PROBABILITY or contest.probability is not None
            figures[name] = rank(contest) if known else np.full(contest.cases, np.nan)
        if pairs.cases == len(rows):
            return figures
        return {name: _mean_by(user, values, len(rows)) for name, values in figures.items()}

    def compared(self, rows: NDArray[Any]) -> tuple[Pairs, Contest, NDArray[np.int64]]:
        """Compare every held-out item of the users in ``rows``; also say which of them each case belongs to."""
        block = self.source.block(rows)
        numbers = uniforms(self.seed, rows, self.sampled)
        answers, owner = [], []
        for position, row in enumerate(rows.tolist()):
            liked, liked_ratings = _row(self.train, row)
            held, held_ratings = _row(self.held_out, row)
            met = self.met.indices[self.met.indptr[row] : self.met.indptr[row + 1]]
            others = unmet_items(self.seed, row, met, self.met.shape[1], self.sampled, numbers[position])
            for item, rating in zip(held.tolist(), held_ratings.tolist(), strict=True):
                tests = np.concatenate([[item], others])
                over_liked = _finite(block(position, tests, liked))
                over_others = _finite(block(position, tests[:1], others))
                answers.append(
                    (
                        over_liked[0],
                        np.sign(rating - liked_ratings),
                        over_others[0],
                        np.count_nonzero(over_liked > 0, axis=1),
                        over_liked.mean(axis=1) if len(liked) else np.zeros(len(tests)),
                        self.source.probability(row, tests[:1], liked, over_liked[:1]),
                        self.source.probability(row, tests[:1], others, over_others),
                    )
                )
                owner.append(position)
        return (*_joined(answers, self.cut, self.sampled), np.array(owner, dtype=np.int64))


def _joined(answers: list[tuple[Any, ...]], cut: int, sampled: int) -> tuple[Pairs, Contest]:
    margin, outcome, over_others, wins, means, p_liked, p_others = zip(*answers, strict=True)
    cases = np.arange(len(answers))
    liked = np.array([len(part) for part in margin])
    offered = p_liked[0] is not None
    pairs = Pairs(
        np.concatenate(margin),
        np.concatenate(outcome),
        np.repeat(cases, liked),
        len(answers),
        np.concatenate([p[0] for p in p_liked]) if offered else None,
    )
    contest = Contest(
        case=np.repeat(cases, [len(part) for part in over_others]),
        margin=np.concatenate(over_others),
        wins=np.concatenate([part[1:] for part in wins]),
        mean=np.concatenate([part[1:] for part in means]),
        held_out_wins=np.array([part[0] for part in wins]),
        held_out_mean=np.array([part[0] for part in means]),
        liked=liked,
        probability=np.concatenate([p[0] for p in p_others]) if offered else None,
        cut=cut,
        out_of=sampled,
    )
    return pairs, contest


def _row(data: Interactions, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    matrix = data.matrix
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return matrix.indices[part], matrix.data[part]


def _finite(margins: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(margins).all():
        raise ValueError(
            "the model gives margins that are not finite; its training has diverged (lower the learning rate)"
        )
    return margins


def _mean_by(owner: NDArray[np.int64], values: Floats, users: int) -> Floats:
    known = ~np.isnan(values)
    total = np.bincount(owner[known], weights=values[known], minlength=users)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.bincount(owner[known], minlength=users), dtype=np.float64)
