"""The figures of the simulation study as tables: mean and spread over the seeds."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from studies._tools import Record
from studies.simulation.fits import MODELS, SCENARIOS

KEYS = ["scenario", "model", "missing"]
_DIGITS = 4


def curves_table(records: Sequence[Record]) -> pl.DataFrame:
    """Return a row per scenario, model, missing share and epoch, with mean and standard deviation over the seeds.

    The columns are ``log_likelihood_gain`` (per comparison, over epoch 0), ``log_likelihood_to_truth`` (per
    comparison, over that of the true parameters: above 0 a model fits the noise), ``sparsity`` of T, ``frobenius``
    (distance of X from the truth) and ``mse`` of X; ``_sd`` is the standard deviation. Fits that diverged are left out.
    """
    rows: list[dict[str, object]] = []
    for key, whole in _groups(records).items():
        group = [record for record in whole if not record["diverged"]]
        if not group:
            continue
        log_likelihood, mse, sparsity = (_stack(group, name) for name in ("log_likelihood", "mse", "sparsity"))
        true = np.array([[record["true_log_likelihood"]] for record in group])
        cells = np.array([[record["cells"]] for record in group])
        curves = {
            "log_likelihood_gain": log_likelihood - log_likelihood[:, :1],
            "log_likelihood_to_truth": log_likelihood - true,
            "sparsity": sparsity,
            "frobenius": np.sqrt(mse * cells),
            "mse": mse,
        }
        for epoch in range(mse.shape[1]):
            row: dict[str, object] = dict(zip(KEYS, key, strict=True)) | {"epoch": epoch}
            for name, values in curves.items():
                row |= _mean_and_spread(name, values[:, epoch])
            rows.append(row)
    return pl.DataFrame(rows)


def final_table(records: Sequence[Record]) -> pl.DataFrame:
    """Return a row per scenario, model and missing share: what the last epoch came to, mean and spread over the seeds.

    Fits that diverged are counted in ``diverged`` and left out of the rest. Beside what :func:`curves_table` has:
    ``relative_mse`` (MSE over the variance of X) and the correlations of the aligned factors with the truth, null in a
    scenario or model whose T is 1.
    """
    rows: list[dict[str, object]] = []
    for key, whole in _groups(records).items():
        group = [record for record in whole if not record["diverged"]]
        row: dict[str, object] = dict(zip(KEYS, key, strict=True))
        row |= {"seeds": len(whole), "diverged": len(whole) - len(group)}

        def last(name: str, group: list[Record] = group) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.array([record[name][-1] for record in group])

        def each(name: str, group: list[Record] = group) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.array([math.nan if record[name] is None else record[name] for record in group])

        row |= _mean_and_spread("mse", last("mse"))
        row |= _mean_and_spread("relative_mse", last("mse") / each("variance"))
        row |= _mean_and_spread("frobenius", np.sqrt(last("mse") * each("cells")))
        row |= _mean_and_spread("sparsity", last("sparsity"))
        row["true_sparsity"] = _rounded(float(np.mean([record["true_sparsity"] for record in whole])))
        row |= _mean_and_spread("log_likelihood_to_truth", last("log_likelihood") - each("true_log_likelihood"))
        for name in ("user_correlation", "item_correlation", "rival_correlation"):
            row |= _mean_and_spread(name, each(name))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _groups(records: Sequence[Record]) -> dict[tuple[str, str, int], list[Record]]:
    """Return the records of each scenario, model and missing share, in the order of the study, by seed."""
    groups: dict[tuple[str, str, int], list[Record]] = {}
    scenarios, models = list(SCENARIOS), list(MODELS)

    def place(record: Record) -> tuple[int, int, int, int]:
        return (
            scenarios.index(record["scenario"]),
            models.index(record["model"]),
            record["missing"],
            record["seed"],
        )

    for record in sorted(records, key=place):
        groups.setdefault((record["scenario"], record["model"], record["missing"]), []).append(record)
    return groups


def _stack(group: list[Record], name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([record[name] for record in group], np.float64)


def _mean_and_spread(name: str, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float | None]:
    """Return mean and standard deviation; null where there is none."""
    if not len(values):
        return {name: None, f"{name}_sd": None}
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {name: _rounded(float(values.mean())), f"{name}_sd": _rounded(spread)}


def _rounded(value: float) -> float | None:
    """Keep the digits that mean something."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
