"""The simulation study as a whole: what it records, resumes and writes."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.data import simulate
from studies.simulation import fits
from studies.simulation.__main__ import find_authors_file, simulation_command
from studies.simulation.fits import MODELS, PAPER, Piece, Watcher, fit_and_watch, make_model, preferences, unit
from studies.simulation.report import divergence, final_rows
from studies.simulation.study import run_pieces
from studies.simulation.summary import curves_table, final_table
from tests.rewriting import contents

PIECE = Piece("sim2", missing=95, seed=0)


@pytest.fixture(scope="module")
def record():
    return fit_and_watch(PIECE, "sad")


def test_at_the_truth_the_error_is_zero_and_the_likelihood_that_of_the_truth():
    simulation = simulate("sim2", n=5, m=8, k=2)
    watcher = Watcher(simulation)
    truth = SAD.from_factors(simulation.user_factors, simulation.item_factors, simulation.rival_factors)
    watcher(0, {}, truth)
    pairs = simulation.comparisons
    x = simulation.preference(pairs.user_index, pairs.winner_index, pairs.loser_index)
    assert watcher.curves["mse"][0] < 1e-10
    assert watcher.curves["log_likelihood"][0] == pytest.approx(-np.logaddexp(0, -x).mean(), abs=1e-6)
    assert watcher.curves["sparsity"][0] == (simulation.rival_factors == 1).mean()


def test_an_item_bias_is_part_of_the_preferences():
    simulation = simulate("sim2", n=5, m=8, k=2)
    factors = simulation.user_factors, simulation.item_factors, simulation.rival_factors
    model = SAD.from_factors(*factors, item_bias=np.arange(8.0))
    items = model.items
    expected = np.stack([model.margins(user, items, items) for user in model.users])
    np.testing.assert_allclose(preferences(model.state.parameters), expected, atol=1e-4)


def test_curves_start_before_the_first_epoch_and_end_after_the_last(record):
    model, _ = make_model("sad", PIECE.simulation(), 0)
    model.fit(PIECE.simulation().comparisons)
    assert len(record["mse"]) == len(model.state.history) + 1
    assert record["sparsity"][0] == 1
    assert record["sparsity"][-1] == pytest.approx(model.state.history[-1]["sparsity"], abs=1e-6)
    assert record["log_likelihood"][0] == pytest.approx(np.log(0.5), abs=0.01)


def test_the_papers_setting_starts_where_the_released_code_does():
    simulation = simulate("sim2")
    model, start = make_model("sad-paper", simulation, 0)
    assert start.user_factors.std() == pytest.approx(1, abs=0.15)
    assert np.log(start.rival_factors).std() == pytest.approx(1, abs=0.15)
    model.set_params(iterations=0).fit(simulation.comparisons, warm_start=start)
    np.testing.assert_array_equal(model.rival_factors, start.rival_factors)
    settings = model.settings
    assert (settings.learning_rate, settings.regularization, settings.rival_regularization) == (0.05, 0.005, 0.01)
    assert settings.schedule == "constant"
    scarce = simulate("sim2", missing=0.97)
    model, start = make_model("sad-paper", scarce, 0)
    assert model.fit(scarce.comparisons, warm_start=start).item_bias is None


def test_an_unknown_scenario_or_model_is_refused_by_name():
    with pytest.raises(ValueError, match="sim3"):
        Piece("sim3", 0, 0).simulation()
    with pytest.raises(ValueError, match="authors_file"):
        Piece("authors", 0, 0).simulation()
    with pytest.raises(ValueError, match="nmf"):
        make_model("nmf", simulate(), 0)


def test_records_are_the_same_with_one_process_and_with_two(tmp_path):
    pieces = [Piece("sim1", 97, 0), Piece("sim2", 97, 1)]
    one, two = (run_pieces(tmp_path / str(workers), pieces, workers, show_progress=False) for workers in (1, 2))
    assert len(one) == 2 * len(MODELS)
    assert one == two


def test_only_what_is_missing_damaged_or_of_other_settings_is_fitted_again(tmp_path, monkeypatch):
    fitted = []

    def count(piece, name):
        fitted.append(name)
        return fit_and_watch(piece, name)

    monkeypatch.setattr(fits, "fit_and_watch", count)
    before = run_pieces(tmp_path, [PIECE], 1, show_progress=False)
    assert fitted == list(MODELS)
    fitted.clear()
    assert run_pieces(tmp_path, [PIECE], 1, show_progress=False) == before
    assert not fitted
    (tmp_path / "runs" / "sim2-95-bpr-000.result").unlink()
    cut = tmp_path / "runs" / "sim2-95-sad-paper-000.result"
    cut.write_bytes(cut.read_bytes()[:100])
    monkeypatch.setitem(PAPER, "regularization", 0.006)
    other = run_pieces(tmp_path, [PIECE], 1, show_progress=False)
    assert fitted == ["bpr", "sad-paper", "bpr-paper"]
    assert other[:2] == before[:2]
    assert other[3] != before[3]


def test_a_record_knows_the_settings_it_was_made_with():
    simulation = PIECE.simulation()
    for name in MODELS:
        model, start = make_model(name, simulation, 0)
        model.set_params(iterations=model.iterations).fit(simulation.comparisons, warm_start=start)
        assert unit(PIECE, name, simulation).identity["settings"] == model.settings.as_dict()


def test_tables_hold_mean_and_spread_over_the_seeds(record):
    other = record | {"seed": 1, "mse": [2 * value for value in record["mse"]]}
    final = final_table([other, record])
    last = record["mse"][-1]
    assert final["seeds"].to_list() == [2]
    assert final["mse"][0] == pytest.approx(1.5 * last, rel=1e-3)
    assert final["mse_sd"][0] == pytest.approx(last / np.sqrt(2), rel=1e-3)
    assert final["relative_mse"][0] == pytest.approx(1.5 * last / record["variance"], rel=1e-3)
    curves = curves_table([other, record])
    assert curves["epoch"].to_list() == list(range(len(record["mse"])))
    assert curves["log_likelihood_gain"][0] == 0
    assert curves["frobenius"][0] == pytest.approx(
        np.mean([np.sqrt(r["mse"][0] * r["cells"]) for r in (record, other)]), rel=1e-3
    )


def test_a_fit_that_diverges_is_recorded_counted_and_in_no_mean(record, monkeypatch):
    monkeypatch.setitem(PAPER, "learning_rate", 90.0)
    piece = Piece("sim2", missing=0, seed=0)
    lost = fit_and_watch(piece, "sad-paper")
    assert lost["diverged"]
    assert len(lost["mse"]) <= PAPER["iterations"]
    kept = record | {"model": "sad-paper", "missing": 0, "seed": 1}
    final = final_table([lost, kept])
    assert final.select("seeds", "diverged").rows() == [(2, 1)]
    assert final["mse"][0] == pytest.approx(record["mse"][-1], rel=1e-3)
    assert "1 of the 2 fits of SAD, the paper's setting" in divergence(final)
    alone = final_table([lost])
    assert alone["mse"].to_list() == [None]
    assert final_rows(alone)[1][0][3] == "diverged"
    assert curves_table([lost]).is_empty()


def test_the_command_writes_tables_figures_and_a_report_that_agree(tmp_path, monkeypatch):
    monkeypatch.delenv("SADREC_DATA", raising=False)
    arguments = ["--seeds", "1", "--missing", "0,95", "-o", str(tmp_path), "--workers", "1"]
    result = CliRunner().invoke(simulation_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    final = pl.read_csv(tmp_path / "final.csv")
    assert final.select("scenario", "model", "missing").n_unique() == len(final) == 2 * len(MODELS) * 2
    assert pl.read_csv(tmp_path / "curves.csv")["epoch"].max() == 120
    report = (tmp_path / "report.md").read_text()
    ours = final.filter((pl.col("scenario") == "sim2") & (pl.col("model") == "sad") & (pl.col("missing") == 0))
    assert f"| 0 % | SAD, ours | {ours['mse'][0]:.3g} ±" in report
    pictures = set(re.findall(r"\]\((.*?\.png)\)", report))
    assert pictures == {path.name for path in tmp_path.glob("*.png")}
    for text in ("**holds**", "**does not hold**", "**not run**"):
        assert text in report
    assert "Sim1: SAD is on par with BPR" in result.output


@pytest.mark.parametrize("missing", ["", "0,x", "-1", "0,100", "0.5"])
def test_percentages_that_are_none_are_refused(tmp_path, missing):
    result = CliRunner().invoke(simulation_command, [f"--missing={missing}", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "0,50,80" in result.output
    assert not (tmp_path / "out").exists()


def test_the_authors_file_is_found_through_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SADREC_DATA", str(tmp_path))
    assert find_authors_file() is None
    path = tmp_path / "authors-sim2" / "raw.npz"
    path.parent.mkdir()
    path.touch()
    assert find_authors_file() == path


def test_an_interrupted_study_says_how_to_continue_and_leaves_whole_records(tmp_path):
    command = [sys.executable, "-m", "studies.simulation", "--seeds", "40", "--missing", "95", "--workers", "2"]
    command += ["-o", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/*.result")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Run the same command again" in errors
    assert "Traceback" not in errors
    records = list(tmp_path.glob("runs/*.result"))
    assert records
    for path in records:
        assert contents(path)[1]["values"]["mse"]
