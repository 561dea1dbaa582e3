"""The order inside ratings: what training on it does, and the study that measures it."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from sadrec import SAD, Interactions
from sadrec.evaluation import evaluate
from studies.order.__main__ import order_command
from studies.order.study import CHOSEN, POPULARITY, choose, order_study

SMALL = {"factors": 8, "iterations": 30, "learning_rate": 0.1, "bias": True}


def rated(users=120, items=60, seed=0):
    """People touch items at random and rate them by an item's quality and their own taste."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(users, 2)) @ rng.normal(size=(2, items)) + rng.normal(size=items)
    rating = np.clip(np.round(3 + taste), 1, 5) * (rng.random((users, items)) < 0.4)
    return Interactions.from_csr(sp.csr_matrix(rating.astype(np.float32)))


def test_more_pairs_from_the_order_mean_more_accuracy_on_unequal_pairs():
    train, held_out = rated().leave_one_out(seed=0)
    accuracy = [
        evaluate(SAD(**SMALL, order_share=share).fit(train, show_progress=False), train, held_out)["unequal_accuracy"]
        for share in (0.0, 0.5)
    ]
    assert accuracy[1] > accuracy[0] + 0.1


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("order")
    return lambda: order_study(
        folder,
        rated(),
        shares=(0.0, 0.3),
        candidates=({"order_share": 0.2}, {"order_share": 0.5}),
        settings=SMALL,
        splits=2,
        show_progress=False,
    )


def test_the_study_writes_a_curve_with_popularity_and_the_chosen_model(study):
    result = study()
    assert result.curve["model"].unique(maintain_order=True).to_list() == [POPULARITY, "q = 0", "q = 0.3", CHOSEN]
    splits = dict(result.curve.filter(pl.col("measure") == "m1").select("model", "splits").iter_rows())
    assert splits == {POPULARITY: 2, "q = 0": 1, "q = 0.3": 1, CHOSEN: 2}
    assert result.chosen["order_share"] in (0.2, 0.5)
    text = result.report.read_text()
    assert "](curve.png)" in text and (result.report.parent / "curve.png").stat().st_size > 1000
    assert result.curve["mean"].is_not_null().all()


def test_run_again_it_fits_nothing(study, monkeypatch):
    before = study().report.read_text()

    def refuse(*arguments, **options):
        raise AssertionError("nothing is left to fit")

    monkeypatch.setattr(SAD, "fit", refuse)
    assert study().report.read_text() == before


def test_the_chosen_model_is_the_one_whose_weaker_side_is_best():
    figures = [(0.80, 0.85), (0.76, 0.895), (0.755, 0.91), (0.70, 0.95)]
    assert choose([{"unequal_accuracy": accuracy, "m1": m1} for accuracy, m1 in figures]) == 2


def test_data_without_ratings_is_refused(tmp_path):
    clicks = Interactions.from_csr(sp.csr_matrix(np.eye(5, dtype=np.float32)))
    with pytest.raises(ValueError, match="ratings"):
        order_study(tmp_path, clicks)


@pytest.mark.data
def test_the_command_runs_on_movielens(tmp_path, data_folder):
    arguments = ["--quick", "--data", str(data_folder), "-o", str(tmp_path), "--quiet"]
    result = CliRunner().invoke(order_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "| q = 0.4 |" in result.output
