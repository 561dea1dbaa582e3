"""What the figures say: SAD against the best of the paper's models, and against our own BPR."""

import numpy as np

from sadrec.evaluation.tables import measure_of
from studies.table.paper import MEASURES, best_printed
from studies.table.study import TableStudy

# Smaller differences are rounding in single precision: with T at 1 SAD computes what BPR does in another order.
ROUNDING = 1e-6
COMPARED = (*MEASURES, "unequal_accuracy", "sampled_auc", "log_loss")


def against_paper(study: TableStudy) -> tuple[list[str], list[list[str]]] | None:
    """Return header and rows: the paper's best on each measure, our SAD (first number of factors), the verdict."""
    title = study.models[0].title
    rows = []
    for name in MEASURES:
        best, values = best_printed(study.data.name, name), study.comparison.values(title, name)
        if best is None or not values:
            return None
        measure = measure_of(name)
        digits = 1 if measure.share else 3
        ours = round(measure.shown(float(np.mean(list(values.values())))), digits)
        verdict = "better" if ours > best[1] else "equal" if ours == best[1] else "worse"
        rows.append([measure.heading, f"{best[1]:.{digits}f} ({best[0]})", f"{ours:.{digits}f}", verdict])
    return ["", "best of the paper", title, ""], rows


def differences(study: TableStudy) -> dict[tuple[int, str], tuple[float, float]]:
    """Return mean and standard error of SAD minus BPR over common sets, by factors and measure; better is positive."""
    gaps_by_measure = {}
    titles = {(model.name, model.factors): model.title for model in study.models}
    for (name, factors), title in titles.items():
        if name != "sad" or factors is None:
            continue
        for measure in COMPARED:
            sad = study.comparison.values(title, measure)
            bpr = study.comparison.values(titles["bpr", factors], measure)
            common = sorted(set(sad) & set(bpr))
            if common:
                shown = measure_of(measure)
                gaps = np.array([shown.better * (shown.shown(sad[at]) - shown.shown(bpr[at])) for at in common])
                error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("nan")
                gaps_by_measure[factors, measure] = float(gaps.mean()), error
    return gaps_by_measure


def against_bpr(study: TableStudy) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: SAD minus BPR with its standard error over sets, for every number of factors."""
    gaps_by_measure = differences(study)
    sizes = list(dict.fromkeys(factors for factors, _ in gaps_by_measure))
    rows = []
    for measure in dict.fromkeys(measure for _, measure in gaps_by_measure):
        shown = measure_of(measure)
        cells = [shown.heading + (" (BPR minus SAD)" if shown.better < 0 else "")]
        for factors in sizes:
            mean, error = gaps_by_measure.get((factors, measure), (float("nan"), float("nan")))
            digits = 2 if shown.share else 4
            cells.append(f"{mean:+.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else ""))
        rows.append(cells)
    return ["SAD minus BPR ± standard error", *[f"k={factors}" for factors in sizes]], rows


def bpr_sentence(study: TableStudy) -> str:
    """Say plainly where SAD is not at least equal to BPR within one standard error."""
    gaps_by_measure = differences(study)
    parts = []
    for factors in dict.fromkeys(factors for factors, _ in gaps_by_measure):
        worse = [
            f"{measure_of(measure).name} ({mean:+.3g}" + (f" ± {error:.2g})" if np.isfinite(error) else ", one set)")
            for (k, measure), (mean, error) in gaps_by_measure.items()
            if k == factors and mean < -(error if np.isfinite(error) else 0.0) - ROUNDING
        ]
        where = f"At k={factors} SAD is at least equal to BPR within one standard error of the paired difference"
        parts.append(f"{where} on every measure." if not worse else f"{where}, except on {', '.join(worse)}.")
    return " ".join(parts) + " Differences are positive where SAD is better."
