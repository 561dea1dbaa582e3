"""The paper's claims: each verdict follows the figures, in both directions."""

import polars as pl
import pytest

from studies.simulation.claims import check_claims

GOOD = {
    "sad": {
        "mse": 1.0,
        "relative_mse": 0.02,
        "rival_correlation": 0.99,
        "user_correlation": 0.99,
        "item_correlation": 0.99,
    },
    "bpr": {"mse": 1.0, "relative_mse": 0.02},
}


def table(change=None):
    """Return results with which every claim holds, some of them changed."""
    rows = []
    for scenario, true in (("sim1", 1.0), ("sim2", 0.86)):
        for model in ("sad", "bpr", "sad-paper", "bpr-paper"):
            for missing in (0, 50, 80, 90):
                kind = model.split("-")[0]
                row = {"scenario": scenario, "model": model, "missing": missing, "true_sparsity": true, **GOOD[kind]}
                row["sparsity"] = true if missing <= 50 else true - 0.2
                if scenario == "sim2" and kind == "bpr":
                    row["mse"] = 10.0
                if scenario == "sim1" and missing > 70:
                    row["mse"] = 5.0
                if change is not None:
                    row |= change(row) or {}
                rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def verdicts(final, setting="ours"):
    return [claim.verdicts[setting].holds for claim in check_claims(final)]


def test_with_good_figures_every_claim_holds():
    assert verdicts(table()) == verdicts(table(), "paper") == [True] * 9


@pytest.mark.parametrize(
    ("which", "scenario", "model", "missing", "bad"),
    [
        (0, "sim2", "sad", 0, {"rival_correlation": 0.94}),
        (1, "sim2", "sad", 0, {"item_correlation": 0.94}),
        (2, "sim2", "sad", 50, {"sparsity": 0.83}),
        (3, "sim2", "sad", 80, {"mse": 5.1}),
        (4, "sim1", "sad", 50, {"sparsity": 0.94}),
        (5, "sim1", "sad", 80, {"sparsity": 1.0}),
        (6, "sim1", "bpr", 50, {"relative_mse": 0.11}),
        (7, "sim1", "bpr", 90, {"mse": 1.9}),
        (8, "sim1", "sad", 50, {"mse": 1.06}),
    ],
)
def test_one_bad_figure_undoes_its_claim_in_its_setting_only(which, scenario, model, missing, bad):
    def change(row):
        return bad if (row["scenario"], row["model"], row["missing"]) == (scenario, model, missing) else None

    expected = [place != which for place in range(9)]
    assert verdicts(table(change)) == expected
    assert verdicts(table(change), "paper") == [True] * 9


def test_what_was_not_run_is_neither_true_nor_false():
    final = table().filter(pl.col("missing") <= 50)
    assert verdicts(final) == [True, True, True, True, True, None, True, None, True]


def test_the_authors_truth_counts_before_simulated_ones():
    rows = table().filter(pl.col("scenario") == "sim2").with_columns(scenario=pl.lit("authors"), rival_correlation=0.5)
    assert verdicts(pl.concat([table(), rows]))[0] is False
