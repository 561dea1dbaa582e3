"""Top-N: how models are tuned alike, what the table holds, and that test data is seen once."""

import importlib
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from sadrec import Interactions
from sadrec.evaluation import EASE
from studies.baselines import BaselineError
from studies.defaults.study import defaults_study
from studies.top_n import study as top_n
from studies.top_n.__main__ import top_n_command
from studies.top_n.published import PublishedSplit, load_gowalla
from studies.top_n.spaces import OF_SETS, SPACES
from studies.top_n.study import TITLES, settings_to_try, top_n_study

SMALL = {
    "sad": {"factors": (4, 8), "iterations": (5, 10)},
    "bpr": {"factors": (4, 8), "iterations": (5, 10)},
    "ease": {"regularization": (1.0, 10.0, 100.0)},
    "popularity": {},
}
FIRST = {"sad": {"factors": 4, "iterations": 5}, "bpr": {"factors": 4, "iterations": 5}, "ease": {}, "popularity": {}}


def groups(users=60, items=40, seed=0):
    """Two groups of people, each touching its own half of the items."""
    rng = np.random.default_rng(seed)
    own = (np.arange(users)[:, None] < users // 2) == (np.arange(items) < items // 2)
    return Interactions.from_csr(sp.csr_matrix((rng.random((users, items)) < np.where(own, 0.5, 0.02)).astype(float)))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("top-n")
    return lambda: top_n_study(
        folder, groups(), "groups", models=tuple(SMALL), trials=3, seeds=2, spaces=SMALL, start=FIRST,
        num_threads=1, show_progress=False,
    )  # fmt: skip


def spaces_of(space):
    """Return the spaces of a model, of which most have one."""
    return list(space) if isinstance(space, tuple) else [space]


@pytest.mark.parametrize("key", [key for key in SPACES if key != "popularity"])
@pytest.mark.parametrize(("spaces", "start"), OF_SETS.values(), ids=OF_SETS)
def test_every_model_tries_as_many_settings_none_twice_its_start_first(key, spaces, start):
    parts = spaces_of(spaces[key])
    points = settings_to_try(key, spaces[key], start[key], 12)
    there_are = min(sum(math.prod(map(len, part.values())) for part in parts), 12)
    assert len(points) == there_are and points[0] == start[key]
    assert len({tuple(sorted(point.items())) for point in points}) == there_are
    for point in points[1:]:
        assert any(point.keys() == part.keys() and all(point[name] in part[name] for name in part) for part in parts)
    assert points == settings_to_try(key, spaces[key], start[key], 12)


def test_several_spaces_share_the_trials():
    points = settings_to_try("sad", OF_SETS["movielens-100k"][0]["sad"], OF_SETS["movielens-100k"][1]["sad"], 30)
    assert sorted(point.get("loss", "pairwise") for point in points) == ["pairwise"] * 16 + ["softmax"] * 14
    assert {point["regularization"] for point in points if point["loss"] == "pairwise"} == {0.02, 0.022, 0.024, 0.026}


@pytest.mark.parametrize("spaces", [spaces for spaces, _ in OF_SETS.values()], ids=OF_SETS)
def test_sad_and_bpr_are_tuned_over_the_same_space(spaces):
    for ours, simpler in zip(spaces_of(spaces["sad"]), spaces_of(spaces["bpr"]), strict=True):
        assert {**ours, "rival_regularization": ()} == {**simpler, "rival_regularization": ()}


def test_the_table_has_every_model_and_ours_with_default_settings(study):
    result = study()
    figures = result.summary.filter(pl.col("measure") == "ndcg@10")
    expected = {TITLES[key] for key in SMALL} | {"SAD, defaults", "BPR (ours), defaults"}
    assert set(figures["model"]) == expected
    assert set(figures["splits"]) == {2}
    means = dict(figures.select("model", "mean").iter_rows())
    assert means["EASE"] > means["Popularity"] + 0.05


def test_the_best_validation_score_decides(study):
    result = study()
    for key, tuned in result.tuned.items():
        best = max(tuned.trials, key=lambda trial: trial.score)
        assert tuned.settings == best.settings
        assert f"| {TITLES[key]} | {len(tuned.trials)} | {best.score:.4f} |" in result.report.read_text()


def test_tuning_never_sees_test_data(monkeypatch, tmp_path):
    data = groups()
    test = data.split(test=0.2, seed=0)[1]
    seen = []
    real = top_n.evaluate_top_n

    def watched(model, train, held_out, *lengths, **options):
        seen.append((train.matrix.multiply(test.matrix).nnz, held_out.matrix.multiply(test.matrix).nnz))
        return real(model, train, held_out, *lengths, **options)

    monkeypatch.setattr(top_n, "evaluate_top_n", watched)
    monkeypatch.setattr(importlib.import_module("sadrec.evaluation.tune"), "evaluate_top_n", watched)
    top_n_study(
        tmp_path, data, "groups", models=["ease"], trials=3, seeds=1, spaces=SMALL, start=FIRST, show_progress=False
    )
    assert seen == [(0, 0)] * 3 + [(0, test.matrix.nnz)]


def test_of_a_published_split_only_the_training_part_is_tuned_on(monkeypatch, tmp_path):
    train, test = groups().split(test=0.2, seed=5)
    seen = []
    real = top_n.evaluate_top_n

    def watched(model, fitted, held_out, *lengths, **options):
        seen.append((fitted.matrix.nnz, held_out.matrix.multiply(test.matrix).nnz))
        return real(model, fitted, held_out, *lengths, **options)

    monkeypatch.setattr(top_n, "evaluate_top_n", watched)
    monkeypatch.setattr(importlib.import_module("sadrec.evaluation.tune"), "evaluate_top_n", watched)
    published = PublishedSplit(train, test, {"Oracle": {"recall@20": 0.9, "ndcg@20": 0.95}}, "Delphi")
    result = top_n_study(
        tmp_path,
        published,
        "temple",
        models=["ease"],
        trials=2,
        seeds=1,
        spaces=SMALL,
        start=FIRST,
        show_progress=False,
    )
    (tried, chosen) = seen[:2], seen[2:]
    assert all(fitted < train.matrix.nnz and tested == 0 for fitted, tested in tried)
    assert chosen == [(train.matrix.nnz, test.matrix.nnz)]
    report = result.report.read_text()
    assert "| Oracle (published) | 0.9000 | 0.9500 |" in report and "figures of Delphi, not run here" in report
    assert set(result.summary["measure"]) >= {"recall@20", "ndcg@20"}


def test_default_settings_alone_need_no_tuning(tmp_path):
    result = top_n_study(
        tmp_path, groups(), "groups", models=["sad-defaults"], trials=1, seeds=1, num_threads=1, show_progress=False
    )
    assert not result.tuned and result.summary["model"].unique().to_list() == ["SAD, defaults"]


def test_ease_is_left_out_in_words_where_its_matrices_do_not_fit(monkeypatch, tmp_path):
    monkeypatch.setattr(top_n, "_memory", lambda: 1000)
    result = top_n_study(
        tmp_path, groups(), "groups", models=["ease", "popularity"], trials=1, seeds=1, show_progress=False
    )
    assert result.summary["model"].unique().to_list() == ["Popularity"]
    assert "EASE: left out: its matrices of items x items" in result.report.read_text()


@pytest.mark.data
def test_gowalla_is_read_as_it_was_published(data_folder):
    if not (data_folder / "gowalla").is_dir():
        pytest.skip("the folder has no gowalla")
    gowalla = load_gowalla(data_folder)
    assert gowalla.train.shape == gowalla.test.shape == (29_858, 40_981)
    assert (len(gowalla.train), len(gowalla.test)) == (810_128, 217_242)
    assert gowalla.train.matrix.multiply(gowalla.test.matrix).nnz == 0


def test_without_a_folder_gowalla_says_what_to_do():
    with pytest.raises(ValueError, match="--data FOLDER"):
        load_gowalla(None)


@pytest.mark.parametrize("fits", [0, 1], ids=["in a trial", "in the last fit"])
def test_a_baseline_that_fails_gets_a_note_and_the_others_their_rows(monkeypatch, tmp_path, fits):
    real, fitted = EASE.fit, []

    def failing(self, data, show_progress=True):
        if len(fitted) == fits:
            raise BaselineError("ease ran out of breath: give it more\nlong log")
        fitted.append(self)
        return real(self, data, show_progress)

    monkeypatch.setattr(EASE, "fit", failing)
    result = top_n_study(
        tmp_path, groups(), "groups", models=["ease", "popularity"], trials=1, seeds=1, show_progress=False
    )
    assert result.summary["model"].unique().to_list() == ["Popularity"]
    assert "ease ran out of breath" in result.report.read_text()
    assert "long log" not in result.report.read_text()


def test_settings_that_diverge_are_a_bad_trial(tmp_path):
    wild = {"factors": 4, "iterations": 5, "learning_rate": 1e30, "regularization": 0.0}
    result = top_n_study(
        tmp_path, groups(), "groups", models=["sad"], trials=3, seeds=1, spaces=SMALL, start={"sad": wild},
        num_threads=1, show_progress=False,
    )  # fmt: skip
    assert "learning_rate" not in result.tuned["sad"].settings


@pytest.mark.parametrize(("option", "value"), [("trials", 0), ("seeds", 0), ("models", ["oracle"]), ("models", [])])
def test_what_makes_no_sense_is_refused(tmp_path, option, value):
    with pytest.raises(ValueError, match=option):
        top_n_study(tmp_path / "out", groups(), "groups", **{option: value})
    assert not (tmp_path / "out").exists()


def test_the_defaults_are_compared_with_alternatives(tmp_path):
    result = defaults_study(
        tmp_path,
        {"groups": groups()},
        candidates={"default settings": {}, "no bias": {"bias": False}},
        show_progress=False,
    )
    models = result.summaries["groups"]["model"].unique(maintain_order=True).to_list()
    assert models == ["Popularity", "EASE", "BPR()", "SAD()", "SAD: no bias"]
    assert "`SAD()` takes loss " in result.report.read_text()


@pytest.mark.data
def test_an_interrupted_command_goes_on_where_it_was(tmp_path, data_folder):
    arguments = ["--name", "movielens-100k", "--model", "ease", "--trials", "12", "--seeds", "1", "-o", str(tmp_path)]
    command = [sys.executable, "-m", "studies.top_n", *arguments, "--data", str(data_folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/[!.]*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Run the same command again" in errors and "Traceback" not in errors
    done = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/[!.]*")}
    assert 1 <= len(done) < 13
    result = CliRunner().invoke(top_n_command, [*arguments, "--data", str(data_folder)], catch_exceptions=False)
    assert result.exit_code == 0 and "| EASE |" in result.output
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())
