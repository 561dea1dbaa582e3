"""``sadrec evaluate`` and ``sadrec compare`` on tiny data."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_matrix

from sadrec import SAD, Interactions
from sadrec.cli import main


def ratings(users=40, items=150, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 6, (users, items)) * (rng.random((users, items)) < 0.1)
    dense[:, 0] = 3
    return Interactions.from_csr(csr_matrix(dense.astype(np.float32)))


def test_evaluate_counts_what_the_model_does_not_know(tmp_path):
    train, held_out = ratings().leave_one_out(seed=0)
    SAD(factors=3, iterations=2).fit(train, show_progress=False).save(tmp_path / "m.sad")
    train.to_frame().write_csv(tmp_path / "train.csv")
    stranger = pl.DataFrame({"user": [999], "item": [0], "rating": [3.0]})
    frame = held_out.to_frame().select("user", "item", "rating")
    pl.concat([frame, stranger.cast(frame.schema)]).write_csv(tmp_path / "test.csv")
    files = ["--train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv")]
    result = CliRunner().invoke(main, ["evaluate", str(tmp_path / "m.sad"), *files, "--json"], catch_exceptions=False)
    assert '"test": 1' in result.output
    assert '"m1"' in result.output


def test_a_file_of_which_the_model_knows_nothing_is_refused_by_name(tmp_path):
    train, _ = ratings().leave_one_out(seed=0)
    SAD(factors=3, iterations=2).fit(train, show_progress=False).save(tmp_path / "m.sad")
    train.to_frame().write_csv(tmp_path / "train.csv")
    (tmp_path / "other.csv").write_text("user,item,rating\n999,7,3\n")
    files = ["--train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "other.csv")]
    result = CliRunner().invoke(main, ["evaluate", str(tmp_path / "m.sad"), *files])
    assert "other.csv has no users and items of the model: its users are such as 999" in " ".join(result.output.split())


def test_a_model_is_not_judged_by_what_it_was_fitted_on(tmp_path):
    train, held_out = ratings().leave_one_out(seed=0)
    SAD(factors=3, iterations=2).fit(train, show_progress=False).save(tmp_path / "m.sad")
    train.to_frame().write_csv(tmp_path / "train.csv")
    held_out.to_frame().write_csv(tmp_path / "held-out.csv")
    swapped = ["--train", str(tmp_path / "held-out.csv"), "--test", str(tmp_path / "train.csv")]
    result = CliRunner().invoke(main, ["evaluate", str(tmp_path / "m.sad"), *swapped])
    assert "are what the model was fitted on" in " ".join(result.output.split())


def test_interactions_keep_their_ratings_in_the_ids_of_a_model():
    data = ratings()

    from sadrec.cli.evaluate import in_ids_of

    class Reversed:
        users, items = data.users[::-1], data.items[::-1]

    moved, left_out = in_ids_of(Reversed(), data)
    assert left_out == 0
    assert (moved.matrix[::-1, ::-1] != data.matrix).nnz == 0


def test_compare_prints_a_table_of_the_models_asked_for(tmp_path):
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    options = [str(file), "--models", "ease,popularity", "--splits", "2", "--quiet"]
    result = CliRunner().invoke(main, ["compare", *options], catch_exceptions=False)
    assert [line.split(" | ")[0] for line in result.output.splitlines()[2:4]] == ["| EASE", "| Popularity"]


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ([], "| Model | ndcg@10 | recall@20 |"),
        (["--top-n", "5"], "| Model | ndcg@5 | recall@5 |"),
        (["--paper"], "| Model | mean_margin | match (%) | match_per_user (%) | m1 (%) | m2 (%) |"),
    ],
)
def test_compare_judges_lists_or_as_the_paper_does_and_says_what_each_measure_is(tmp_path, options, header):
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    options = [str(file), "--models", "popularity", "--splits", "1", "--quiet", *options]
    lines = CliRunner().invoke(main, ["compare", *options], catch_exceptions=False).output.splitlines()
    assert lines[0] == header
    names = [name.removesuffix(" (%)") for name in header.strip("| ").split(" | ")[1:]]
    assert [line.split(": ")[0] for line in lines[-len(names) :]] == names


def test_compare_takes_lists_or_the_measures_of_the_paper(tmp_path):
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    result = CliRunner().invoke(main, ["compare", str(file), "--paper", "--top-n", "5"])
    assert result.exit_code == 2
    assert "give one of them" in result.output


@pytest.mark.parametrize("kept", [True, False])
def test_an_interrupted_compare_says_how_to_go_on(tmp_path, monkeypatch, kept):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sadrec.evaluation.compare", interrupt)
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    options = [str(file), "--models", "ease", *(["-o", str(tmp_path / "out")] if kept else [])]
    result = CliRunner().invoke(main, ["compare", *options])
    assert result.exit_code == 130
    assert ("Run the same command again" if kept else "give a folder with -o") in result.output


def test_compare_takes_comparisons(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6, 300)
    frame = pl.DataFrame({"user": rng.integers(0, 9, 300), "winner": first, "loser": (first + 1) % 6})
    frame.write_csv(tmp_path / "games.csv")
    options = [str(tmp_path / "games.csv"), "--splits", "2", "--factors", "2", "--quiet"]
    result = CliRunner().invoke(main, ["compare", *options], catch_exceptions=False)
    lines = result.output.splitlines()
    assert lines[0] == "| Model | log_loss | accuracy (%) |"
    assert lines[-2].startswith("log_loss: ") and lines[-2].endswith(" Less is better.")
    assert [line.split(" | ")[0] for line in lines[2:5]] == ["| SAD (k=2)", "| BPR (k=2)", "| Popularity"]
    refused = CliRunner().invoke(main, ["compare", *options, "--top-n", "5"])
    assert "--top-n is for interactions" in refused.output


def test_compare_with_bpr_says_whether_rivals_pay(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 900)  # each item beats the next one in a cycle: no score says so
    pl.DataFrame({"user": 0, "winner": first, "loser": (first + 1) % 3}).write_csv(tmp_path / "games.csv")
    options = [str(tmp_path / "games.csv"), "--with-bpr", "--splits", "2", "--quiet"]
    result = CliRunner().invoke(main, ["compare", *options], catch_exceptions=False)
    assert result.output.splitlines()[-1].startswith("Learn T (use SAD): over 2 splits")
    as_json = json.loads(CliRunner().invoke(main, ["compare", *options, "--json"], catch_exceptions=False).output)
    assert (as_json["advice"], as_json["splits"]) == ("learn", 2)
    refused = CliRunner().invoke(main, ["compare", *options, "--models", "sad"])
    assert "--models does not go with --with-bpr" in refused.output
