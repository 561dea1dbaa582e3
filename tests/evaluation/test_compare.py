"""Many models on many splits: complete, resumable, and never brought down by one model."""

import json
import subprocess
import sys
import textwrap
import time

import numpy as np
import polars as pl
import pytest

from sadrec import BPR, SAD, Comparisons
from sadrec.evaluation import Popularity as PopularityOfItems
from sadrec.evaluation import compare, evaluate, evaluate_top_n
from tests.rewriting import with_array


class Popularity:
    """Counts, raised to a power; remembers how often any of its kind was fitted."""

    fits = 0

    def __init__(self, power=1.0):
        self.power = power

    def get_params(self):
        return {"power": self.power}

    def fit(self, train, show_progress=True):
        type(self).fits += 1
        self.users, self.items = train.users, train.items
        self.counts = np.bincount(train.matrix.indices, minlength=len(train.items)) ** self.power
        return self

    def scores(self, users):
        return np.tile(self.counts, (len(users), 1))


class Broken(Popularity):
    def fit(self, train, show_progress=True):
        raise RuntimeError("no such luck\nand a second line")


class Slow(Popularity):
    """Never ends by itself."""

    def fit(self, train, show_progress=True):
        type(self).fits += 1
        while True:
            time.sleep(0.01)


class Diverged(Popularity):
    def scores(self, users):
        return super().scores(users) * np.nan


@pytest.fixture
def data(make_ratings):
    return make_ratings(users=40, items=150)


def test_every_model_has_every_split_and_the_figures_of_evaluate(data):
    result = compare({"up": Popularity(), "down": Popularity(-1.0)}, data, splits=3, seed=7, show_progress=False)
    assert result.models == ["up", "down"]
    for split in range(3):
        train, held_out = data.leave_one_out(seed=7 + split)
        expected = evaluate(Popularity().fit(train), train, held_out, 7 + split)
        by_measure = dict(result.frame.filter(model="up", split=split).select("measure", "value").rows())
        assert by_measure == {k: (None if np.isnan(v) else v) for k, v in expected.items()}


def test_the_top_n_protocol_splits_at_random(data):
    result = compare({"up": Popularity()}, data, splits=2, protocol="top_n", N=(5, 10), test=0.3, show_progress=False)
    train, test = data.split(test=0.3, seed=1)
    expected = evaluate_top_n(Popularity().fit(train), train, test, (5, 10), seed=1)
    assert result.values("up", "ndcg@10")[1] == expected["ndcg@10"]


def test_given_splits_are_used_as_they_are(data):
    pair = data.leave_one_out(seed=99)
    result = compare({"up": Popularity()}, splits=[pair, lambda: data.leave_one_out(seed=98)], show_progress=False)
    assert result.values("up", "m1")[0] == evaluate(Popularity().fit(pair[0]), *pair, 0)["m1"]
    assert len(result.values("up", "m1")) == 2


def test_summary_is_mean_and_spread_over_splits(data):
    result = compare({"up": Popularity()}, data, splits=4, show_progress=False)
    values = np.array(list(result.values("up", "m2").values()))
    row = result.summary().filter(measure="m2").row(0, named=True)
    assert row["mean"] == pytest.approx(values.mean())
    assert row["sd"] == pytest.approx(values.std(ddof=1))
    assert row["splits"] == 4


def test_a_model_that_fails_is_a_row_that_says_so(data):
    models = {"up": Popularity(), "broken": Broken(), "nan": Diverged(), "not a model": 7, "a class": Popularity}
    result = compare(models, data, splits=2, show_progress=False)
    bad = result.frame.filter(pl.col("status") == "failed")
    assert set(bad["model"]) == {"broken", "nan", "not a model", "a class"}
    assert bad["measure"].null_count() == len(bad) == 8
    assert result.notes("broken") == "failed: RuntimeError: no such luck"
    assert "not finite" in result.notes("nan")
    assert "no such luck" in result.table()
    assert "give a model, Popularity(...), not its class" in result.notes("a class")
    assert "needs fit(data, show_progress=...) and get_params()" in result.notes("not a model")
    assert result.summary().filter(model="up", measure="m1")["splits"].item() == 2


def test_a_model_over_its_time_budget_is_a_row_that_says_so(data):
    result = compare({"slow": Slow(), "up": Popularity()}, data, splits=1, budget={"slow": 0.2}, show_progress=False)
    assert result.notes("slow").startswith("out of time: OutOfTimeError: took longer than its budget of 0.2 seconds")
    assert result.notes("up") == ""


def test_finished_results_are_not_computed_again(data, tmp_path):
    first = compare({"up": Popularity()}, data, splits=3, path=tmp_path, show_progress=False)
    Popularity.fits = 0
    second = compare({"up": Popularity()}, data, splits=4, path=tmp_path, show_progress=False)
    assert Popularity.fits == 1
    assert first.frame.equals(second.frame.filter(pl.col("split") < 3))
    assert first.per_user("up", "m1") == compare(
        {"up": Popularity()}, data, splits=3, path=tmp_path, show_progress=False
    ).per_user("up", "m1")


def test_other_settings_other_data_and_damaged_files_are_computed_anew(data, make_ratings, tmp_path):
    compare({"up": Popularity()}, data, splits=1, path=tmp_path, show_progress=False)
    for models, on in (
        ({"up": Popularity(2.0)}, data),
        ({"up": Popularity()}, make_ratings(users=40, items=150, seed=5)),
    ):
        Popularity.fits = 0
        compare(models, on, splits=1, path=tmp_path, show_progress=False)
        assert Popularity.fits == 1
    for file in tmp_path.glob("*.comparison"):
        file.write_bytes(file.read_bytes()[:50])
    Popularity.fits = 0
    compare({"up": Popularity()}, data, splits=1, path=tmp_path, show_progress=False)
    assert Popularity.fits == 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("of m1", lambda array: array[:-1]),
        ("of m1", lambda array: array.astype(np.float64)),
        ("user_rows", lambda array: array + 10**6),
        ("user_rows", lambda array: array[None]),
    ],
)
def test_a_record_whose_arrays_do_not_fit_is_computed_anew(data, tmp_path, name, change):
    whole = compare({"up": Popularity()}, data, splits=1, path=tmp_path, show_progress=False)
    (file,) = tmp_path.glob("*.comparison")
    with_array(file, name, change)
    again = compare({"up": Popularity()}, data, splits=1, path=tmp_path, show_progress=False)
    assert again.per_user("up", "m1") == whole.per_user("up", "m1")


def test_failures_are_tried_again_and_timeouts_are_not(data, tmp_path):
    calls = []

    class Flaky(Popularity):
        def fit(self, train, show_progress=True):
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("once")
            return super().fit(train, show_progress)

    assert compare({"m": Flaky()}, data, splits=1, path=tmp_path, show_progress=False).notes("m")
    assert not compare({"m": Flaky()}, data, splits=1, path=tmp_path, show_progress=False).notes("m")
    Slow.fits = 0
    for _ in range(2):
        compare({"slow": Slow()}, data, splits=1, path=tmp_path, budget=0.1, show_progress=False)
    assert Slow.fits == 1


def test_a_larger_budget_gives_a_model_that_ran_out_of_time_another_try(data, tmp_path):
    class Late(Popularity):
        def fit(self, train, show_progress=True):
            time.sleep(0.3)
            return super().fit(train, show_progress)

    def notes(budget):
        return compare({"m": Late()}, data, splits=1, path=tmp_path, budget=budget, show_progress=False).notes("m")

    assert notes(0.1).startswith("out of time")
    assert notes(0.05).startswith("out of time")
    assert notes(60) == ""
    assert notes(0.1) == "", "what is finished stays finished, whatever the budget"


def test_a_killed_comparison_continues_where_it_stopped(tmp_path):
    """Kill -9 in the middle of the second of three splits: the first is kept, the rest is computed."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import os, sys
            import numpy as np
            from scipy.sparse import csr_matrix
            from sadrec.data import Interactions
            from sadrec.evaluation.compare import compare

            class Popularity:
                def get_params(self): return {{}}
                def fit(self, train, show_progress=True):
                    print("fit", flush=True)
                    marks.append(1)
                    if sys.argv[1] == "die" and len(marks) == 2:
                        os.kill(os.getpid(), 9)
                    self._counts = np.bincount(train.matrix.indices, minlength=50).astype(float)
                    self._ids = train.users, train.items
                users = property(lambda self: self._ids[0])
                items = property(lambda self: self._ids[1])
                def scores(self, users): return np.tile(self._counts, (len(users), 1))

            marks = []
            data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).integers(0, 4, (30, 50))))
            folder = {str(tmp_path / "results")!r}
            result = compare({{"m": Popularity()}}, data, splits=3, path=folder, show_progress=False)
            print(result.frame.filter(measure="m1")["value"].to_list())
            """
        )
    )

    def run(mode):
        return subprocess.run([sys.executable, str(program), mode], capture_output=True, text=True, check=False)

    killed, resumed = run("die"), run("live")
    assert killed.returncode == -9
    assert resumed.stdout.count("fit") == 2, resumed.stderr
    assert len(json.loads(resumed.stdout.splitlines()[-1])) == 3
    left = {file.suffix for file in (tmp_path / "results").iterdir()}
    assert left == {".comparison"}


def test_paired_tests_over_splits_and_users(data):
    models = {"up": Popularity(), "down": Popularity(-1.0), "up again": Popularity(1.5)}
    result = compare(models, data, splits=4, show_progress=False)
    for unit, n in (("splits", 4), ("users", 40)):
        rows = result.significance("up", ["m1", "sampled_auc"], unit=unit)
        same = rows.filter(model="up again", measure="sampled_auc").row(0, named=True)
        other = rows.filter(model="down", measure="sampled_auc").row(0, named=True)
        assert same["difference"] == 0
        assert same["p_t"] == same["p_wilcoxon"] == 1
        assert other["n"] <= n
        mean = np.mean(list(result.values("up", "sampled_auc").values()))
        rest = np.mean(list(result.values("down", "sampled_auc").values()))
        assert other["difference"] == pytest.approx(mean - rest, abs=0.02)
        assert other["p_holm"] == pytest.approx(min(1, 2 * other["p_t"]))
    with pytest.raises(ValueError, match="no model 'nobody'"):
        result.significance("nobody")
    with pytest.raises(ValueError, match="unit"):
        result.significance("up", unit="moons")


def test_a_table_has_a_row_per_model_and_the_best_in_bold(data):
    models = {"a|b": Popularity(), "b_c": Popularity(-1.0), "broken": Broken()}
    result = compare(models, data, splits=2, show_progress=False)
    markdown = result.table(measures=["mean_margin", "m1"])
    assert markdown.splitlines()[0] == "| Model | mean_margin | m1 (%) | Note |"
    assert r"a\|b" in markdown
    assert "±" in markdown
    assert markdown.count("**") == 4


def test_everything_is_written_to_a_folder(data, tmp_path):
    result = compare({"up": Popularity(), "broken": Broken()}, data, splits=2, show_progress=False)
    paths = result.save(tmp_path / "out", measures=["m1", "m2", "match", "mean_margin", "brier"])
    assert {path.name for path in paths} == {"table.md", "results.csv", "comparison.png"}
    assert (tmp_path / "out" / "comparison.png").read_bytes()[:4] == b"\x89PNG"


def test_data_is_taken_in_every_form_that_fit_takes(data):
    options = {"splits": np.int64(1), "show_progress": False}
    as_matrix = compare({"m": Popularity()}, data.matrix, **options).values("m", "m1")
    assert as_matrix == compare({"m": Popularity()}, data, **options).values("m", "m1")


def test_bad_input_is_refused(data, tmp_path):
    with pytest.raises(ValueError, match="no models"):
        compare({}, data)
    with pytest.raises(ValueError, match="splits must"):
        compare({"m": Popularity()}, data, splits=0)
    with pytest.raises(ValueError, match="give data"):
        compare({"m": Popularity()})
    with pytest.raises(ValueError, match="splits is empty"):
        compare({"m": Popularity()}, splits=[])
    for wrong in (2.5, "five"):
        with pytest.raises(TypeError, match="whole number or a list of"):
            compare({"m": Popularity()}, data, splits=wrong)
    with pytest.raises(TypeError, match="models must be given by name"):
        compare([Popularity()], data)
    with pytest.raises(TypeError, match="models must be given by name"):
        compare({1: Popularity()}, data)
    with pytest.raises(ValueError, match="budget names 'n', which is not among the models: m"):
        compare({"m": Popularity()}, data, budget={"n": 5.0})
    with pytest.raises(ValueError, match=r"budget must be above 0, not -1 \(for 'm'\)"):
        compare({"m": Popularity()}, data, budget=-1)
    with pytest.raises(ValueError, match="protocol"):
        compare({"m": Popularity()}, data, protocol="bootstrap")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match="is a file"):
        compare({"m": Popularity()}, data, path=file)


@pytest.fixture
def games():
    """Judges who agree with a strength of the items, most of the time."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 12, 600)
    second = (first + rng.integers(1, 12, 600)) % 12
    wins = rng.random(600) < 1 / (1 + np.exp(0.5 * (first - second)))
    users = [f"judge {n}" for n in range(6)]
    return Comparisons.from_indices(
        rng.integers(0, 6, 600), np.where(wins, second, first), np.where(wins, first, second), users=users,
        items=[f"item {n:02d}" for n in range(12)],
    )  # fmt: skip


def test_comparisons_are_split_and_evaluated_as_such(games, tmp_path):
    options = {"factors": 3, "iterations": 20}
    models = {"SAD": SAD(**options), "BPR": BPR(**options), "Popularity": PopularityOfItems()}
    result = compare(models, games, splits=2, seed=5, test=0.25, path=tmp_path, show_progress=False)
    train, test = games.split(test=0.25, seed=5)
    expected = evaluate(SAD(**options).fit(train, show_progress=False), train, test)
    assert result.values("SAD", "log_loss")[0] == expected["log_loss"]
    assert result.values("Popularity", "accuracy")[0] > 0.7
    assert result.notes("Popularity") == ""
    again = compare(models, games, splits=2, seed=5, test=0.25, path=tmp_path, show_progress=False)
    assert again.frame.equals(result.frame)
    rows = again.significance("SAD", ["log_loss"], unit="rows").row(0, named=True)
    difference = [
        ours - again.per_row("BPR", "log_loss")[key] for key, ours in again.per_row("SAD", "log_loss").items()
    ]
    assert rows["n"] == 2 * len(test) == len(difference)
    assert rows["difference"] == pytest.approx(np.mean(difference))
    assert rows["error"] == pytest.approx(np.std(difference, ddof=1) / np.sqrt(len(difference)))
    assert again.significance("SAD", ["accuracy"], unit="users")["n"].to_list() == [6, 6]
    with pytest.raises(ValueError, match="protocol 'top_n' does not suit Comparisons"):
        compare(models, games, protocol="top_n")


def test_given_splits_of_comparisons_are_used(games):
    pair = games.split(seed=4)
    result = compare({"m": PopularityOfItems()}, splits=[pair], show_progress=False)
    assert result.values("m", "accuracy")[0] == evaluate(PopularityOfItems().fit(pair[0]), *pair)["accuracy"]
