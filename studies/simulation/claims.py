"""What the paper says about its simulation, put as conditions that the figures meet or do not."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from studies.simulation.fits import PAPER

# Up to here missingness is "small or medium" in the paper's words, and beyond HARD it is "more challenging".
MEDIUM, HARD = 50, 70
SETTINGS = {"paper": "the paper's setting", "ours": "ours"}


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a setting (None: the study has not run what it would take), and the numbers."""

    holds: bool | None
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes
    ----------
    text
        What it says.
    criterion
        What we take it to mean; the paper gives no numbers.
    figure
        The figure that shows it.
    verdicts
        One for each setting.
    """

    text: str
    criterion: str
    figure: str
    verdicts: dict[str, Verdict]


def check_claims(final: pl.DataFrame) -> list[Claim]:
    """Put the paper's claims to the figures of the last epochs.

    Parameters
    ----------
    final
        As :func:`studies.simulation.summary.final_table` gives it.
    """
    sim2 = "authors" if "authors" in final["scenario"].to_list() else "sim2"
    judge = _Judge(final, sim2)
    epochs = PAPER["iterations"]
    claims = [
        (
            f"Sim2, complete: after {epochs} epochs T̂ recovers the structure of T, up to permutation",
            "correlation of the aligned T at least 0.95",
            "rivals",
            judge.rivals,
        ),
        (
            "Sim2, complete: Ξ and H converge to the true values, up to order and sign",
            "correlations of the aligned Ξ and H at least 0.95",
            "factors",
            judge.factors,
        ),
        (
            "Sim2: the estimated sparsity of T is accurate at small and medium missingness",
            f"within 2 points of the truth, up to {MEDIUM} % missing",
            f"convergence-{sim2}",
            judge.sparsity_sim2,
        ),
        (
            "Sim2: the MSE of SAD is much lower than BPR's over a wide range of missingness",
            "less than half, up to 80 % missing",
            f"error-{sim2}",
            judge.much_lower,
        ),
        (
            "Sim1: T converges to a sparsity close to 1 at small and medium missingness",
            f"at least 95 %, up to {MEDIUM} % missing",
            "convergence-sim1",
            judge.sparsity_sim1,
        ),
        (
            f"Sim1: that gets harder beyond {HARD} % missing",
            f"sparsity lower beyond {HARD} % than anywhere up to {MEDIUM} %",
            "convergence-sim1",
            judge.harder,
        ),
        (
            "Sim1: SAD and BPR both reach a low MSE at small and medium missingness",
            f"at most a tenth of the variance of X, up to {MEDIUM} % missing",
            "error-sim1",
            judge.low,
        ),
        (
            "Sim1: both deteriorate when much is missing",
            f"MSE at the most missing more than twice that at {MEDIUM} %",
            "error-sim1",
            judge.deteriorate,
        ),
        (
            "Sim1: SAD is on par with BPR, whose model is true there",
            f"MSE at most 5 % above BPR's, up to {MEDIUM} % missing",
            "error-sim1",
            judge.on_par,
        ),
    ]
    return [
        Claim(text, criterion, figure, {setting: rule(setting) for setting in SETTINGS})
        for text, criterion, figure, rule in claims
    ]


class _Judge:
    """The conditions, each a function of the setting."""

    def __init__(self, final: pl.DataFrame, sim2: str) -> None:
        self._final = final
        self._sim2 = sim2

    def rivals(self, setting: str) -> Verdict:
        return self._least(setting, ("rival_correlation",))

    def factors(self, setting: str) -> Verdict:
        return self._least(setting, ("user_correlation", "item_correlation"))

    def _least(self, setting: str, names: tuple[str, ...]) -> Verdict:
        complete = self._values(self._sim2, "sad", setting, names, lambda missing: missing == 0)
        if not complete:
            return _NOT_RUN
        values = complete[0]
        return Verdict(min(values) >= 0.95, " and ".join(f"{value:.3f}" for value in values))

    def sparsity_sim2(self, setting: str) -> Verdict:
        rows = self._values(self._sim2, "sad", setting, ("sparsity", "true_sparsity"), _medium)
        if not rows:
            return _NOT_RUN
        values = [sparsity for sparsity, _ in rows]
        holds = all(abs(sparsity - true) <= 0.02 for sparsity, true in rows)
        return Verdict(holds, f"{_percent(values)}, truth {rows[0][1]:.0%}")

    def sparsity_sim1(self, setting: str) -> Verdict:
        values = [row[0] for row in self._values("sim1", "sad", setting, ("sparsity",), _medium)]
        return Verdict(min(values) >= 0.95, _percent(values)) if values else _NOT_RUN

    def harder(self, setting: str) -> Verdict:
        easy = [row[0] for row in self._values("sim1", "sad", setting, ("sparsity",), _medium)]
        hard = [row[0] for row in self._values("sim1", "sad", setting, ("sparsity",), lambda missing: missing > HARD)]
        if not easy or not hard:
            return _NOT_RUN
        return Verdict(max(hard) < min(easy), f"{_percent(hard)} beyond {HARD} %, {_percent(easy)} up to {MEDIUM} %")

    def low(self, setting: str) -> Verdict:
        parts = {
            model: [row[0] for row in self._values("sim1", model, setting, ("relative_mse",), _medium)]
            for model in ("sad", "bpr")
        }
        if not all(parts.values()):
            return _NOT_RUN
        holds = all(max(values) <= 0.1 for values in parts.values())
        return Verdict(holds, "; ".join(f"{model.upper()} {_span(values)} of it" for model, values in parts.items()))

    def deteriorate(self, setting: str) -> Verdict:
        texts, holds = [], True
        for model in ("sad", "bpr"):
            half = self._values("sim1", model, setting, ("mse",), lambda missing: missing == MEDIUM)
            most = self._values("sim1", model, setting, ("mse",), lambda missing: missing > HARD)
            if not half or not most:
                return _NOT_RUN
            holds &= most[-1][0] > 2 * half[0][0]
            texts.append(f"{model.upper()} {most[-1][0]:.2f} against {half[0][0]:.2f}")
        return Verdict(holds, "; ".join(texts))

    def much_lower(self, setting: str) -> Verdict:
        ratios = self._ratios(self._sim2, setting, lambda missing: missing <= 80)
        return Verdict(max(ratios) < 0.5, f"{_span(ratios)} of BPR's") if ratios else _NOT_RUN

    def on_par(self, setting: str) -> Verdict:
        ratios = self._ratios("sim1", setting, _medium)
        return Verdict(max(ratios) <= 1.05, f"{_span(ratios)} of BPR's") if ratios else _NOT_RUN

    def _ratios(self, scenario: str, setting: str, wanted: Callable[[int], bool]) -> list[float]:
        sad, bpr = (self._values(scenario, model, setting, ("mse",), wanted) for model in ("sad", "bpr"))
        return [one[0] / other[0] for one, other in zip(sad, bpr, strict=True)]

    def _values(
        self, scenario: str, model: str, setting: str, names: tuple[str, ...], wanted: Callable[[int], bool]
    ) -> list[tuple[float, ...]]:
        """Return the columns ``names`` of a model, a row per missing share that is wanted and has fits to show."""
        name = model if setting == "ours" else f"{model}-paper"
        rows = self._final.filter((pl.col("scenario") == scenario) & (pl.col("model") == name)).sort("missing")
        rows = rows.drop_nulls(names)
        return [
            tuple(float(row[column]) for column in names)
            for row in rows.iter_rows(named=True)
            if wanted(row["missing"])
        ]


_NOT_RUN = Verdict(None, "not run")


def _medium(missing: int) -> bool:
    return missing <= MEDIUM


def _percent(values: list[float]) -> str:
    low, high = f"{min(values):.1%}", f"{max(values):.1%}"
    return low if low == high else f"{low} to {high}"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"
