"""Whether T is worth it: SAD against the same model with all rival factors at 1, on the same splits and settings."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data import Comparisons, Interactions, as_interactions
from sadrec.data.ids import Ids
from sadrec.evaluation._fitting import accepted, variant
from sadrec.evaluation.compare import compare
from sadrec.evaluation.comparison import Comparison
from sadrec.evaluation.measures import measure_of
from sadrec.evaluation.significance import holm

# What the advice rests on. The mean margin does not count: it grows with the scale of the factors alone.
_DECISIVE = ("match", "unequal_accuracy", "m1", "m2", "sampled_auc", "log_loss", "rated_log_loss")
_SAD, _BPR = "SAD", "T = 1"
_GAIN = "sampled_auc"


@dataclass(frozen=True, repr=False)
class Rivalry:
    """What learning T brings on this data; as text, one sentence to act on.

    Attributes
    ----------
    advice
        ``"learn"``, ``"keep at 1"`` or ``"it depends"``.
    tests
        One row per measure: measure, sad, bpr (means over splits), difference, low, high (95 % interval), p (paired
        over splits, corrected for overlapping training parts), p_holm (over the measures), p_users (paired over users).
    sparsity
        Share of T within 0.05 of 1, mean over splits.
    items
        One row per held-out item: item, title, users (held out for how many), difference (in the share of sampled items
        it beats, for the users it was held out from), error, z; those that gain most surely first. Of many items some
        gain by chance: under no difference one in forty has z above 2.
    users
        One row per user: user, splits, difference in the same share, error, z; those that gain most surely first.
    comparison
        The comparison behind it all.
    """

    advice: str
    tests: pl.DataFrame
    sparsity: float
    items: pl.DataFrame
    users: pl.DataFrame
    comparison: Comparison

    def __repr__(self) -> str:
        splits = len({run.split for run in self.comparison.runs})
        better, worse = _decided(self.tests)
        known = f"{100 * self.sparsity:.0f} % of T stayed within 0.05 of 1"
        if self.advice == "learn":
            return (
                f"Learn T (use SAD): over {splits} splits it is better than T = 1 on {_listed(better)} and worse on no "
                f"measure; {known}."
            )
        if self.advice == "it depends":
            return (
                f"It depends on what you need: over {splits} splits learning T is better on {_listed(better)} but "
                f"worse on {_listed(worse)} than T = 1 (BPR); {known}."
            )
        if len(worse):
            return (
                f"Keep T at 1 (use BPR): over {splits} splits learning T is worse on {_listed(worse)} and better on no "
                f"measure; {known}."
            )
        largest = self.tests.drop_nulls("p_holm").sort("p_holm").head(1)
        return (
            f"Keep T at 1 (use BPR, which is smaller and faster): over {splits} splits no measure differs beyond "
            f"chance (closest: {_listed(largest) or 'none could be tested'}); {known}."
        )

    def table(self) -> str:
        """Return the tests in Markdown."""
        lines = ["| measure | SAD | T = 1 | difference | 95 % interval | p | p (Holm) | p (users) |"]
        lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
        for row in self.tests.iter_rows(named=True):
            measure = measure_of(row["measure"])
            sad, bpr, difference, low, high = (
                "" if row[name] is None else f"{measure.shown(row[name]):{sign}.3f}"
                for name, sign in (("sad", ""), ("bpr", ""), ("difference", "+"), ("low", "+"), ("high", "+"))
            )
            p = ["" if row[name] is None else f"{row[name]:.2g}" for name in ("p", "p_holm", "p_users")]
            interval = f"{low} to {high}" if low else ""
            lines.append("| " + " | ".join([measure.heading, sad, bpr, difference, interval, *p]) + " |")
        return "\n".join(lines) + "\n"


def rivalry(
    train: Any,
    splits: int = 5,
    *,
    models: tuple[Any, Any] | None = None,
    seed: int = 0,
    path: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Rivalry:
    """Find out whether learning T is worth it on this data.

    SAD and BPR (SAD with T = 1) are fitted with the same settings on the same leave-one-out splits of ``train`` and
    evaluated on what was held out.

    Parameters
    ----------
    train
        The data to decide for, as interactions in any form; keep your own test data out of it.
    splits
        How many leave-one-out splits, at least 2: a difference is judged by how it varies over them.
    models
        The two models to compare, instead of :class:`sadrec.SAD` and :class:`sadrec.BPR`: classes, functions or models.
    seed
        Of the splits.
    path
        A folder for results, which makes a killed run go on where it was.
    progress
        Show a progress bar.
    **settings
        Settings for both models (``factors=64``, ...); one that only one of them has goes to that one.

    Returns
    -------
    Rivalry
        ``str()`` of it is one sentence; ``.table()``, ``.items``, ``.users`` and ``.comparison`` hold the reasons.

    Raises
    ------
    ValueError
        When a setting is unknown to both models, or one of the models failed on every split, with its reason.
    """
    if isinstance(train, Comparisons):
        raise TypeError(
            "rivalry holds out interactions, and these are comparisons: fit SAD and BPR on some of them and compare "
            "both by evaluate_comparisons on the rest"
        )
    train = as_interactions(train)
    if isinstance(splits, bool) or not isinstance(splits, int) or splits < 2:
        raise ValueError(f"splits must be a whole number of at least 2, not {splits!r}")
    if models is None:
        # Looked up when called: evaluation knows models by protocol only and must not depend on them.
        package = importlib.import_module("sadrec")
        models = (package.SAD, package.BPR)
    if len(models) != 2:
        raise ValueError(f"models must be two, one that learns T and one with T = 1, not {len(models)}")
    _refuse_unknown(models, settings)
    pair = {name: _made(model, settings) for name, model in zip((_SAD, _BPR), models, strict=True)}
    result = compare(pair, train, splits, seed=seed, path=path, progress=progress, also={"sparsity": sparsity_of})
    for name in pair:
        if not result.values(name, "m1"):
            raise ValueError(f"{name} could not be evaluated on any split: {result.notes(name)}")
    tests = _tests(result)
    better, worse = _decided(tests)
    advice = "it depends" if len(better) and len(worse) else "learn" if len(better) else "keep at 1"
    items, users = _gains(result, train, splits, seed)
    sparsity = float(np.mean(list(result.values(_SAD, "sparsity").values()) or [np.nan]))
    return Rivalry(advice, tests, sparsity, items, users, result)


def sparsity_of(model: Any) -> float:
    """Share of T within 0.05 of 1; 1 for a model without rival factors.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sparsity_of(SimpleNamespace(parameters=SimpleNamespace(rival_factors=np.array([[1.0, 1.2], [0.97, 0.0]]))))
    0.5
    """
    rivals = getattr(getattr(model, "parameters", None), "rival_factors", None)
    return 1.0 if rivals is None else float((np.abs(np.asarray(rivals) - 1.0) < 0.05).mean())


def _refuse_unknown(models: tuple[Any, Any], settings: dict[str, Any]) -> None:
    """Refuse a setting that neither model has: left out of both, it would seem to make no difference."""
    known = [accepted(model) for model in models]
    if any(names is None for names in known):
        return
    both = sorted(set().union(*(names or () for names in known)))
    for name in settings:
        if name not in both:
            raise ValueError(f"unknown setting {name!r}: the models have {', '.join(both)}")


def _made(model: Any, settings: dict[str, Any]) -> Any:
    known = accepted(model)
    return variant(model, {name: value for name, value in settings.items() if known is None or name in known})


def _tests(result: Comparison) -> pl.DataFrame:
    measures = [name for name in result.measures if name != "sparsity"]
    over_splits = result.significance(_SAD, measures)
    over_users = result.significance(_SAD, measures, unit="users")
    means = {
        name: [float(np.mean(list(result.values(model, name).values()) or [np.nan])) for model in (_SAD, _BPR)]
        for name in measures
    }
    decisive = np.array([name in _DECISIVE for name in measures])
    p = over_splits["p_t"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    adjusted = holm(np.where(decisive, p, np.nan))
    return pl.DataFrame(
        {
            "measure": measures,
            "sad": [means[name][0] for name in measures],
            "bpr": [means[name][1] for name in measures],
            "difference": over_splits["difference"],
            "low": over_splits["low"],
            "high": over_splits["high"],
            "p": over_splits["p_t"],
            "p_holm": adjusted,
            "p_users": over_users["p_t"],
        }
    ).with_columns(pl.col("p_holm", "sad", "bpr").fill_nan(None))


def _decided(tests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measures on which SAD is better, and worse, beyond chance (5 %, Holm over the measures)."""
    sure = tests.filter(pl.col("p_holm") < 0.05)
    direction = pl.Series([measure_of(name).better for name in sure["measure"]], dtype=pl.Int64)
    favour = sure["difference"] * direction
    return sure.filter(favour > 0), sure.filter(favour < 0)


def _listed(tests: pl.DataFrame) -> str:
    parts = []
    for row in tests.iter_rows(named=True):
        measure = measure_of(row["measure"])
        shown = measure.shown(row["difference"])
        change = f"{shown:+.1f} points" if measure.share else f"{shown:+.2g}"
        parts.append(f"{measure.label} ({change}, p = {row['p_holm']:.2g})")
    return ", ".join(parts)


def _gains(result: Comparison, train: Interactions, splits: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows, columns, differences = [], [], []
    ids = Ids(train.users)
    for split in range(splits):
        (users, ours), (others, theirs) = (result.of_split(name, split, _GAIN) for name in (_SAD, _BPR))
        if not len(users) or not np.array_equal(users, others):
            continue
        _, held_out = train.leave_one_out(seed=seed + split)
        at = np.asarray(ids.positions(users))
        rows.append(at)
        columns.append(held_out.matrix.indices[held_out.matrix.indptr[at]])
        differences.append((ours - theirs).astype(np.float64))
    difference = np.concatenate([np.empty(0), *differences])
    nothing = np.empty(0, dtype=np.int64)
    items = _gain_frame("item", "users", np.concatenate([nothing, *columns]), difference, train.items)
    if train.item_titles is not None:
        titles = pl.DataFrame({"item": train.items, "title": train.item_titles})
        items = items.join(titles, on="item", how="left", maintain_order="left")
    return items, _gain_frame("user", "splits", np.concatenate([nothing, *rows]), difference, train.users)


def _gain_frame(
    name: str, count_name: str, where: NDArray[Any], difference: NDArray[np.float64], ids: NDArray[Any]
) -> pl.DataFrame:
    known = ~np.isnan(difference)
    where, difference = where[known], difference[known]
    count = np.bincount(where, minlength=len(ids))
    met = np.flatnonzero(count)
    n = count[met]
    mean = np.bincount(where, weights=difference, minlength=len(ids))[met] / n
    # One spread for all: that of two or three values says nothing.
    spread = float(difference.std()) if len(difference) else 0.0
    error = spread / np.sqrt(n)
    z = mean / error if spread > 0 else np.zeros(len(met))
    frame = pl.DataFrame({name: ids[met], count_name: n, "difference": mean, "error": error, "z": z})
    return frame.sort("z", name, descending=[True, False])
