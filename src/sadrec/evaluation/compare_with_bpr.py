"""Whether T is worth it: SAD against the same model with all rival factors at 1, on the same splits and settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sadrec._core import check
from sadrec.data import Comparisons, Interactions, as_feedback, folds
from sadrec.evaluation.compare import pieces_of, split_by_split
from sadrec.evaluation.compare_result import CompareResult
from sadrec.evaluation.protocol import copied
from sadrec.evaluation.significance import holm
from sadrec.evaluation.tables import markdown, measure_of

# What the advice rests on. The mean margin does not count: it grows with the scale of the factors alone.
_DECISIVE = ("match", "unequal_accuracy", "m1", "m2", "sampled_auc", "log_loss", "rated_log_loss")
_OF_COMPARISONS = ("log_loss",)
_SAD, _BPR = "SAD", "T = 1"

MATTERS = {"log_loss": 0.005}
"""The smallest difference that matters: with many rows, tiny ones are beyond chance."""
SPLITS = 5
MOST = 100_000
"""Most interactions that are compared on; this number takes less than a minute."""
ENOUGH = 20_000
"""Held-out comparisons that tell such differences from chance; more splits than that takes only cost time."""
SURE, FEWEST = 4.0, 4000
"""A difference this number of standard errors away from what matters, on at least this number of comparisons, is clear.

Looking after every split and stopping at four errors hardly adds to the errors of a last look at two (Haybittle, 1971).
"""


@dataclass(frozen=True, repr=False)
class BPRComparison:
    """The gain from learning T on this data; as text, one sentence of advice.

    Attributes
    ----------
    advice
        ``"learn"`` or ``"keep at 1"``.
    tests
        One row per measure: measure, sad, bpr (means over splits), difference, error, low, high (95 % interval), p
        (paired over splits, corrected for overlapping training parts; of comparisons, paired over those held out),
        p_holm (over the measures), p_users (paired over users).
    sparsity
        Share of T within 0.05 of 1, mean over splits.
    comparison
        The comparison behind it all.
    """

    advice: str
    tests: pl.DataFrame
    sparsity: float
    comparison: CompareResult

    def __repr__(self) -> str:
        splits = len({run.split for run in self.comparison.runs})
        better, worse = _decided(self.tests)
        sparsity = f"{100 * self.sparsity:.0f} % of T stayed within 0.05 of 1"
        over = f"over {splits} split{'s' if splits > 1 else ''}"
        if self.advice == "learn":
            text = f"Learn T (use SAD): {over} it is better than T = 1 on {_listed(better)} and worse on no measure"
        elif len(better):
            text = f"Keep T at 1 (use BPR, which is smaller and faster): {over} learning T is better on "
            text += f"{_listed(better)} but worse on {_listed(worse)}"
        elif len(worse):
            text = f"Keep T at 1 (use BPR): {over} learning T is worse on {_listed(worse)} and better on no measure"
        else:
            closest = _listed(self.tests.drop_nulls("p_holm").sort("p_holm").head(1)) or "none could be tested"
            text = f"Keep T at 1 (use BPR, which is smaller and faster): {over} no measure differs beyond chance, or "
            text += "by enough to matter "
            text += f"(closest: {closest})"
        return f"{text}; {sparsity}."

    def table(self) -> str:
        """Return the tests in Markdown."""
        rows = []
        for row in self.tests.iter_rows(named=True):
            measure = measure_of(row["measure"])
            sad, bpr, difference, low, high = (
                "" if row[name] is None else f"{measure.shown(row[name]):{sign}.3f}"
                for name, sign in (("sad", ""), ("bpr", ""), ("difference", "+"), ("low", "+"), ("high", "+"))
            )
            p = ["" if row[name] is None else f"{row[name]:.2g}" for name in ("p", "p_holm", "p_users")]
            rows.append([measure.heading, sad, bpr, difference, f"{low} to {high}" if low else "", *p])
        return markdown(["measure", "sad", "bpr", "difference", "95 % interval", "p", "p_holm", "p_users"], rows)


def compare_with_bpr(
    data: Any,
    splits: int | None = None,
    *,
    models: tuple[Any, Any] | None = None,
    most: int | None = MOST,
    seed: int = 0,
    path: str | Path | None = None,
    show_progress: bool = True,
    **settings: Any,
) -> BPRComparison:
    """Compare SAD with BPR on this data, to decide whether learning T is worth it.

    SAD and BPR (SAD with T = 1) are fitted with the same settings on the same splits and evaluated on what was held
    out: one interaction of every user; or a fifth of the comparisons, by their log loss. There, T pays when the log
    loss falls beyond chance and by more than 0.005.

    Parameters
    ----------
    data
        The data to decide for: interactions in any form, or Comparisons; keep your own test data out of it.
    splits
        How many splits, at least 2: a difference is judged by how it varies over them. By default 5; of comparisons,
        every one of which is held out in one of them, as many of those 5 as it takes to hold out 20,000, or to see
        on 4,000 or more that the difference is four standard errors above 0.005, or below.
    models
        The two models to compare, instead of :class:`sadrec.SAD` and :class:`sadrec.BPR`.
    most
        Of more interactions than that, those of some users are looked at, drawn at random, who have about this number
        (half of them or more). None: all, which takes longer and sees smaller differences. Comparisons are all
        looked at.
    seed
        Of the splits, and of the users.
    path
        A folder for results, which makes a killed run continue where it stopped.
    show_progress
        Show a progress bar.
    **settings
        Settings for both models (``factors=64``, ...); one that only one of them has goes to that one.

    Returns
    -------
    BPRComparison
        ``str()`` of it is one sentence; ``.table()`` and ``.comparison`` hold the reasons.

    Raises
    ------
    ValueError
        When a setting is unknown to both models, or one of the models failed on every split, with its reason.
    """
    feedback = as_feedback(data)
    if splits is not None:
        check.whole(splits, "splits", 2)
    if models is None:
        from sadrec.models import BPR, SAD

        models = (SAD(), BPR())
    if len(models) != 2:
        raise ValueError(f"models must be two, one that learns T and one with T = 1, not {len(models)}")
    pair = _with_settings(models, settings)
    if most is not None:
        check.whole(most, "most", 1)
        feedback = feedback if isinstance(feedback, Comparisons) else _of_some_users(feedback, most, seed)
    count, stated = splits or SPLITS, isinstance(feedback, Comparisons)
    pieces, protocol = pieces_of(
        feedback, folds(feedback, count, seed) if isinstance(feedback, Comparisons) else count, seed=seed
    )
    for result in split_by_split(pair, pieces, protocol, seed=seed, path=path, show_progress=show_progress):
        if stated and splits is None and _is_clear(result):
            break
    for name in pair:
        if not any(run.status == "done" for run in result.runs if run.model == name):
            raise ValueError(f"{name} could not be evaluated on any split: {result.notes(name)}")
    tests = _tests(result, stated)
    better, worse = _decided(tests)
    advice = "learn" if len(better) and not len(worse) else "keep at 1"
    at_one = [run.sparsity for run in result.runs if run.model == _SAD and run.sparsity is not None]
    sparsity = float(np.mean(at_one or [np.nan]))
    return BPRComparison(advice, tests, sparsity, result)


def _with_settings(models: tuple[Any, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return both models with the settings that each has; raise on one that neither has.

    Left out of both, it would seem to make no difference.
    """
    names_of = [set(copied(model).get_params()) for model in models]
    for name in settings:
        if name not in names_of[0] | names_of[1]:
            raise ValueError(
                f"unknown setting {name!r}: the models have {', '.join(sorted(names_of[0] | names_of[1]))}"
            )
    return {
        title: copied(model, **{name: value for name, value in settings.items() if name in names})
        for title, model, names in zip((_SAD, _BPR), models, names_of, strict=True)
    }


def _of_some_users(data: Interactions, most: int, seed: int) -> Interactions:
    folds = min(-(-data.matrix.nnz // most), data.shape[0])
    return data if folds < 2 else next(iter(data.user_folds(folds, seed)))[1].filter()


def _is_clear(result: CompareResult) -> bool:
    """Whether the splits so far give a clear result."""
    (test,) = result.significance(_SAD, _OF_COMPARISONS, unit="rows").iter_rows(named=True)
    if test["n"] < FEWEST:
        return False
    if abs(-test["difference"] - MATTERS[_OF_COMPARISONS[0]]) > SURE * test["error"]:
        return True
    return len({run.split for run in result.runs}) > 1 and test["n"] >= ENOUGH


def _tests(result: CompareResult, stated: bool) -> pl.DataFrame:
    measures = result.measures
    paired = result.significance(_SAD, measures, unit="rows" if stated else "splits")
    over_users = result.significance(_SAD, measures, unit="users")
    means = {
        name: [float(np.mean(list(result.values(model, name).values()) or [np.nan])) for model in (_SAD, _BPR)]
        for name in measures
    }
    p = paired["p_t"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    decisive = _OF_COMPARISONS if stated else _DECISIVE
    adjusted = holm(np.where([name in decisive for name in measures], p, np.nan))
    return pl.DataFrame(
        {
            "measure": measures,
            "sad": [means[name][0] for name in measures],
            "bpr": [means[name][1] for name in measures],
            **{name: paired[name] for name in ("difference", "error", "low", "high")},
            "p": paired["p_t"],
            "p_holm": adjusted,
            "p_users": over_users["p_t"],
        }
    ).with_columns(pl.col("p_holm", "sad", "bpr").fill_nan(None))


def _decided(tests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measures on which SAD is better, and worse, beyond chance (5 %, Holm over the measures) and enough to matter."""
    least = pl.col("measure").replace_strict(MATTERS, default=0.0, return_dtype=pl.Float64)
    sure = tests.filter((pl.col("p_holm") < 0.05) & (pl.col("difference").abs() > least))
    direction = pl.Series([measure_of(name).better for name in sure["measure"]], dtype=pl.Int64)
    favour = sure["difference"] * direction
    return sure.filter(favour > 0), sure.filter(favour < 0)


def _listed(tests: pl.DataFrame) -> str:
    parts = []
    for row in tests.iter_rows(named=True):
        measure = measure_of(row["measure"])
        shown, error = (measure.shown(row[name] or 0.0) for name in ("difference", "error"))
        change = f"{shown:+.1f} ± {error:.1f} points" if measure.share else f"{shown:+.2g} ± {error:.1g}"
        parts.append(f"{measure.name} ({change}, p = {row['p_holm']:.2g})")
    return ", ".join(parts)
