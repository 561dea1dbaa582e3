"""The evaluation study on tiny data: what is chosen, run, resumed, written and said."""

import importlib
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_matrix

from sadrec import Interactions
from studies.table import study as table_study_module
from studies.table.__main__ import table_command
from studies.table.claims import against_bpr, against_paper, bpr_sentence
from studies.table.data import StudyData, load_study_data
from studies.table.models import StudyModel, study_models
from studies.table.report import main_table, write_report
from studies.table.study import Limits, table_study

QUICK = {name: {"iterations": 2} for name in ("sad", "bpr")}


def ratings(users=40, items=150, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 6, (users, items)) * (rng.random((users, items)) < 0.1)
    dense[:, 0] = 3
    return Interactions.from_csr(csr_matrix(dense.astype(np.float32)))


@pytest.fixture(scope="module")
def data():
    return StudyData("food-com", "Tiny | data", ratings(), ratings().leave_one_out(seed=99))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def study(data, folder):
    return table_study(
        data, folder, baselines=["ease"], factors=(3, 5), splits=Limits(3, {"bpr@5": 2, "sad@5": 2}),
        trials=Limits(2), given=QUICK, show_progress=False,
    )  # fmt: skip


def test_popularity_is_in_every_table_and_every_k_has_its_rows():
    assert [model.title for model in study_models([], [4, 8])] == [
        "SAD (k=4)", "SAD (k=8)", "BPR (k=4)", "BPR (k=8)", "Popularity",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="there is no model 'oracle'"):
        study_models(["oracle"], [4])


def test_ratings_are_masked_and_settings_given_by_hand_win():
    model = StudyModel("sad", "SAD", "SAD", "sadrec", 4, {"iterations": 7}).make({"iterations": 3, "bias": True})
    assert (model.order_share, model.iterations, model.factors, model.bias) == (0.0, 7, 4, True)


@pytest.mark.filterwarnings("ignore:nothing was learnt")
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_what_is_said_of_training_is_what_was_done(share):
    data = Interactions.from_csr(csr_matrix(np.random.default_rng(0).random((300, 300)) < share))
    sad, bpr, _ = study_models([], [4], {"sad": {"negative_candidates": 3}})
    used = bpr.make({"iterations": 1}).fit(data, show_progress=False).settings.as_dict()
    resolved = bpr.resolved({"iterations": 1}, data)
    assert used == resolved
    negative = "an item" if used["negative_candidates"] == 1 else f"the hardest of {used['negative_candidates']} items"
    assert bpr.trained_on({}, data).startswith(f"every interaction against {negative} drawn")
    assert sad.trained_on({}, data).startswith("every interaction against the hardest of 3 items drawn")


def test_a_baselines_defaults_are_tried_first_and_no_point_twice():
    (svd,) = [model for model in study_models(["svd"], [4]) if model.name == "svd"]
    points = svd.points(5)
    assert points[0] == {"learning_rate": 0.02, "iterations": 20, "regularization": 0.01}
    assert len({tuple(point.items()) for point in points}) == 5


def test_the_first_set_is_the_published_one_and_the_others_are_drawn(data):
    sets = [make() for make in data.splits(3)]
    assert sets[0][1] is data.published[1]
    drawn = data.interactions.leave_one_out(seed=2)[1].matrix
    assert (sets[2][1].matrix != drawn).nnz == 0


def test_the_held_out_items_of_the_first_set_have_no_say_in_the_settings(data, tmp_path, monkeypatch):
    seen = []
    real = table_study_module.tune

    def spy(model, train, **options):
        seen.append(train)
        return real(model, train, **options)

    monkeypatch.setattr(table_study_module, "tune", spy)
    table_study(data, tmp_path, baselines=["ease"], factors=(2,), splits=Limits(1), trials=Limits(2), given=QUICK,
                show_progress=False)  # fmt: skip
    held_out = data.published[1].matrix
    assert len(seen) == 3
    assert all(train.matrix.multiply(held_out).nnz == 0 for train in seen)


def test_every_row_runs_on_the_sets_it_was_given(study):
    count = {title: len(study.comparison.values(title, "m1")) for title in study.comparison.models}
    assert count == {"SAD (k=3)": 3, "SAD (k=5)": 2, "BPR (k=3)": 3, "BPR (k=5)": 2, "Popularity": 3, "EASE": 3}


def test_a_second_run_computes_nothing_again(study, data, folder, monkeypatch):
    for work in ("compare._SplitWork._done", "tune._TrialWork._tried"):
        module, kind, method = work.split(".")
        used = importlib.import_module(f"sadrec.evaluation.{module}")
        monkeypatch.setattr(getattr(used, kind), method, lambda *_: pytest.fail("fitted again"))
    again = table_study(
        data, folder, baselines=["ease"], factors=(3, 5), splits=Limits(3, {"bpr@5": 2, "sad@5": 2}),
        trials=Limits(2), budgets=Limits(99), given=QUICK, show_progress=False,
    )  # fmt: skip
    assert again.comparison.frame.equals(study.comparison.frame)


def test_the_report_has_the_papers_figures_beside_ours_and_the_number_of_sets(study, tmp_path):
    text = write_report(study, tmp_path, "python -m studies.table").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| SAD (k=5)"))
    assert "(24.7 ± 0.2)" in row
    assert "| 2 of 3 |" in row
    assert re.search(r"\| Popularity \| [^|(]+ \|", text)
    assert "every interaction against an item drawn uniformly" in text
    assert "On fewer sets, for want of time: SAD (k=5), BPR (k=5)" in text
    assert "set 00" in text
    assert (tmp_path / "measures.png").stat().st_size > 1000
    assert (tmp_path / "calibration.png").stat().st_size > 1000
    assert "# Evaluation on Tiny | data" in text


def test_a_baseline_that_fails_is_a_row_that_says_so(data, tmp_path, monkeypatch):
    def broken(self, interactions):
        raise RuntimeError("the matrix is singular")

    monkeypatch.setattr("sadrec.evaluation.baselines.EASE._learn", broken)
    study = table_study(data, tmp_path, baselines=["ease"], factors=(2,), splits=Limits(1), trials=Limits(2),
                        given=QUICK, show_progress=False)  # fmt: skip
    header, rows = main_table(study)
    assert header[-1] == "Note"
    row = next(row for row in rows if row[0] == "EASE")
    assert row[1:] == ["", "", "", "", "", "0 of 1", "", "failed: RuntimeError: the matrix is singular"]


def test_the_sentence_names_where_sad_is_worse_than_bpr(study, monkeypatch):
    monkeypatch.setattr(
        "studies.table.claims.differences",
        lambda _: {(3, "m1"): (-1.0, 0.2), (3, "m2"): (-0.1, 0.2), (5, "m1"): (0.3, 0.1)},
    )
    text = bpr_sentence(study)
    assert (
        "At k=3 SAD is at least equal to BPR within one standard error of the paired difference, except on m1" in text
    )
    assert "M2" not in text
    assert "At k=5 SAD is at least equal to BPR within one standard error of the paired difference on every" in text
    assert against_bpr(study)[1][0][1] == "-1.00 ± 0.20"


def test_the_best_of_the_paper_is_the_bar(study):
    header, rows = against_paper(study)
    assert header[2] == "SAD (k=3)"
    assert [row[1] for row in rows] == ["-0.329 (SAD)", "14.9 (SAD)", "0.0 (SAD)", "38.2 (NCF)", "37.1 (NCF)"]


def test_the_command_takes_a_path_and_writes_a_report(tmp_path):
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    options = ["--dataset", str(file), "--splits", "2", "--baselines", "ease", "--factors", "3", "--trials", "1"]
    options += ["--set", "sad.iterations=2", "--set", "bpr.iterations=2", "--quiet", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(table_command, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert "Popularity" in result.output
    assert (tmp_path / "out" / "report.md").is_file()


@pytest.mark.parametrize(("option", "value"), [("--splits", "0"), ("--trials", "=2"), ("--set", "svd=2")])
def test_the_command_refuses_what_it_cannot_read(option, value, tmp_path):
    file = tmp_path / "tiny.csv"
    ratings().to_frame().write_csv(file)
    result = CliRunner().invoke(table_command, ["--dataset", str(file), option, value, "-o", str(tmp_path / "o")])
    assert result.exit_code == 2
    assert option in result.output


def test_an_unknown_data_set_is_named():
    with pytest.raises(FileNotFoundError, match="movielens-3m"):
        load_study_data("movielens-3m")


def test_a_model_of_ours_that_fails_is_a_row_that_says_so_and_the_report_is_written(data, tmp_path):
    given = {"sad": {"learning_rate": 1e4, "regularization": 0.0, "iterations": 5}, "bpr": {"iterations": 2}}
    study = table_study(
        data, tmp_path, baselines=[], factors=(3,), splits=Limits(1), trials=Limits(1), given=given, show_progress=False
    )
    assert study.comparison.notes("SAD (k=3)").startswith("failed: DivergedError")
    assert study.consistency is None
    assert list(study.calibrations) == ["BPR (k=3)"]
    markdown = write_report(study, tmp_path)
    assert "| BPR (k=3) |" in markdown.read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sad": {"regularization": -3}}, "sad: regularization must be a finite number, 0 or more, not -3"),
        (
            {"bpr": {"rival_regularization": 0.1}},
            "bpr: unknown setting 'rival_regularization': did you mean 'regularization'",
        ),
        ({"svd": {"factors": -3}}, "svd: factors=-3 must be a whole number"),
    ],
)
def test_settings_that_a_model_cannot_take_are_refused_before_anything_is_computed(data, tmp_path, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        table_study(data, tmp_path, baselines=["svd"], factors=(3,), given=given, show_progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("limit", ["splits", "trials", "budgets"])
def test_a_number_for_a_model_that_is_not_there_is_refused(data, tmp_path, limit):
    with pytest.raises(ValueError, match="there is no model 'svdd' to give a number of its own"):
        table_study(data, tmp_path, baselines=[], factors=(3,), show_progress=False, **{limit: Limits(1, {"svdd": 2})})


@pytest.fixture
def netflix(tmp_path):
    """The Netflix Prize in small, in the format of its makers."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "original"
    folder.mkdir()
    lines = []
    for movie in range(1, 31):
        lines.append(f"{movie}:")
        raters = np.flatnonzero(rng.random(80) < 0.4)
        lines += [f"{6 + 7 * user},{rng.integers(1, 6)},2005-09-06" for user in raters]
    (folder / "combined_data_1.txt").write_text("\n".join(lines) + "\n")
    titles = "".join(f"{movie},2000,Film, the {movie}th\n" for movie in range(1, 31))
    (folder / "movie_titles.csv").write_text(titles, encoding="latin-1")
    return folder


def test_netflix_is_one_command_with_its_selection_and_titles(netflix, tmp_path):
    report = tmp_path / "report"
    command = ["--dataset", "netflix", "--path", str(netflix), "--splits", "2", "--trials", "1", "--factors", "3"]
    command += ["--baselines", "popularity", "--set", "sad.iterations=3", "--set", "bpr.iterations=3", "--quiet"]
    command += ["--set", "sad.random_state=1"]  # so that the two differ
    done = CliRunner().invoke(table_command, [*command, "-o", str(report)])
    assert done.exit_code == 0, done.output
    assert "Selected: 10,000 of the users who rated at least one of the movies 1 to 8,921" in done.output
    text = (report / "report.md").read_text()
    assert "Selected: 10,000 of the users" in text
    assert "Film, the " in text  # the examples have titles
    assert "33.7 ± 0.5" in text  # the paper's figures stand beside ours


def test_what_was_selected_is_kept_while_the_files_are_the_same(netflix, tmp_path, monkeypatch):
    first = load_study_data("netflix", netflix, tmp_path / "kept")
    from studies.table import data as module

    monkeypatch.setattr(module, "load_netflix", lambda *given: pytest.fail("the original files were read again"))
    again = load_study_data("netflix", netflix, tmp_path / "kept")
    assert again.interactions.to_frame().equals(first.interactions.to_frame())
    assert dict(again.interactions.item_titles) == dict(first.interactions.item_titles) != {}
    assert again.selection == first.selection != ""
    (netflix / "combined_data_1.txt").touch()
    with pytest.raises(pytest.fail.Exception, match="read again"):
        load_study_data("netflix", netflix, tmp_path / "kept")


def test_missing_matplotlib_is_said_before_anything_is_fitted(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # cannot be imported
    result = CliRunner().invoke(table_command, ["--dataset", "nothing-of-this-name", "-o", str(tmp_path / "o")])
    assert result.exit_code == 1 and "pictures need matplotlib" in result.output
    assert not (tmp_path / "o").exists()
