"""The command line as a person uses it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec._core.record import locked
from sadrec.cli import main
from sadrec.models import CheckpointError


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}", int(rng.integers(1, 6))) for u in range(20) for i in range(15) if rng.random() < 0.4]
    path = tmp_path / "ratings.csv"
    pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_csv(path)
    return path


@pytest.fixture
def model(ratings, tmp_path):
    path = tmp_path / "m.sad"
    ask("fit", ratings, "-o", path, "--factors", 4, "--iterations", 3)
    return path


def ask(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def refused(*arguments, code=1):
    output = ask(*arguments, code=code)
    assert "Traceback" not in output
    return output


def test_help_names_every_command():
    output = ask("--help")
    for command in (
        "demo",
        "describe",
        "split",
        "fit",
        "tune",
        "recommend",
        "prefer",
        "cycles",
        "explain",
        "similar",
        "posterior",
        "evaluate",
        "compare",
    ):
        assert command in output


def test_describe_shows_the_counts(ratings):
    assert "users     19" in ask("describe", ratings)
    assert json.loads(ask("describe", ratings, "--json"))["users"] == 19


def test_fit_writes_a_model_and_cleans_up(ratings, tmp_path):
    output = ask(
        "fit",
        ratings,
        "-o",
        tmp_path / "out.sad",
        "--factors",
        4,
        "--iterations",
        3,
        "--advanced",
        '{"adaptive": true}',
    )
    assert "SAD with 4 factors" in output
    assert SAD.load(tmp_path / "out.sad").settings.adaptive
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.sad", "ratings.csv"]


def test_fit_says_how_many_factors_the_model_got_where_none_were_given(ratings, tmp_path):
    output = ask("fit", ratings, "-o", tmp_path / "out.sad", "--iterations", 1)
    assert f"SAD with {SAD.load(tmp_path / 'out.sad').settings.factors} factors" in output


def test_fit_as_json_and_bpr(ratings, tmp_path):
    answer = json.loads(ask("fit", ratings, "-o", tmp_path / "b.sad", "--model", "bpr", "--iterations", 2, "--json"))
    assert answer["figures"]["updates"] > 0
    assert type(SAD.load(tmp_path / "b.sad")).__name__ == "BPR"


def test_fit_with_a_validation_share(ratings, tmp_path):
    output = ask("fit", ratings, "-o", tmp_path / "v.sad", "--iterations", 5, "--validation", 0.2, "--patience", 2)
    assert "validation_accuracy" in output


def test_fit_takes_comparisons(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("user,winner,loser\nann,tea,ale\nbob,ale,gin\nann,gin,tea\n")
    ask("fit", path, "-o", tmp_path / "c.sad", "--factors", 2)
    assert set(SAD.load(tmp_path / "c.sad").items) == {"tea", "ale", "gin"}


def test_recommend_leaves_out_what_was_seen(model):
    answer = json.loads(ask("recommend", model, "--user", "u3", "-n", 4, "--json"))
    fitted = SAD.load(model)
    seen = set(fitted.items[fitted.state.seen[fitted.state.users.positions("u3")].indices])
    assert len(answer["items"]) == 4 and not set(answer["items"]) & seen
    assert "mean margin" in ask("recommend", model, "--user", "u3")


def test_recommendations_for_all_users_go_to_a_folder_too(model, tmp_path):
    folder, fitted = tmp_path / "all", SAD.load(model)
    answer = json.loads(ask("recommend", model, "--all", "-o", f"{folder}/", "-n", 4, "--json"))
    assert answer["users"] == len(fitted.users) and (folder / "_manifest.json").exists()
    ask("recommend", model, "--all", "-o", tmp_path / "all.parquet", "-n", 4)
    assert pl.read_parquet(folder / "*.parquet").equals(pl.read_parquet(tmp_path / "all.parquet"))
    assert "for 19 users written to" in ask("recommend", model, "--all", "-o", folder, "-n", 4)  # it was done
    assert "N was 4 and is 5" in refused("recommend", model, "--all", "-o", folder, "-n", 5)


def test_some_users_and_other_exclusions_are_parquet(model, tmp_path):
    pl.DataFrame({"user": ["u3", "u1"]}).write_parquet(tmp_path / "users.parquet")
    pl.DataFrame({"user": ["u3"], "item": ["i2"]}).write_parquet(tmp_path / "known.parquet")
    options = ("--users", tmp_path / "users.parquet", "--user-items", tmp_path / "known.parquet", "--quiet")
    assert "for 2 users" in ask("recommend", model, "--all", "-o", tmp_path / "some", "-n", 99, *options)
    lists = pl.read_parquet(tmp_path / "some" / "*.parquet")
    assert len(lists) == 2 * len(SAD.load(model).items) - 1
    assert "i2" not in lists.filter(user="u3")["item"] and "i2" in lists.filter(user="u1")["item"]


def test_an_interrupted_folder_is_continued_by_the_same_command(model, tmp_path, monkeypatch):
    from sadrec.models import export

    keep, kept = export.Folder.keep, []

    def stop(self, part):
        keep(self, part)
        kept.append(part)
        if len(kept) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(export.Folder, "keep", stop)
    monkeypatch.setattr(export, "_LEAST_USERS", 5)
    call = ("recommend", model, "--all", "-o", tmp_path / "all")
    assert "Run the same command again to continue" in ask(*call, code=130)
    assert "written to" in ask(*call)
    assert len(kept) == 4 == len(list((tmp_path / "all").glob("*.parquet")))


def test_prefer_agrees_with_the_model(model):
    answer = json.loads(ask("prefer", model, "--user", "u1", "i2", "i3", "--json"))
    assert answer["preference"] == SAD.load(model).preference("u1", "i2", "i3")
    text = ask("prefer", model, "--user", "u1", "i2", "i3")
    assert ("prefers i2 to i3" in text) == (answer["preference"] > 0)


def test_recommendations_for_all_users_go_to_a_file(model, tmp_path):
    ask("recommend", model, "--all", "-o", tmp_path / "all.parquet", "-n", 4)
    frame = pl.read_parquet(tmp_path / "all.parquet")
    fitted = SAD.load(model)
    assert frame.columns == ["user", "rank", "item", "score"] and frame["user"].n_unique() == len(fitted.users)
    mine = frame.filter(pl.col("user") == "u3").sort("rank")
    assert mine["item"].to_list() == fitted.recommend("u3", N=4)[0].tolist()
    assert "give --user ID, or --all" in refused("recommend", model, "--all", "--user", "u1", "-o", "x.csv", code=2)
    assert "-o belongs to --all" in refused("recommend", model, "-o", "x.csv", code=2)


def test_without_a_user_the_answer_is_that_of_the_average(model):
    fitted = SAD.load(model)
    answer = json.loads(ask("recommend", model, "--json", "-n", 3))
    assert answer["items"] == fitted.recommend(None, N=3)[0].tolist()
    assert json.loads(ask("prefer", model, "i2", "i3", "--json"))["preference"] == fitted.preference(None, "i2", "i3")
    assert "everybody" in ask("prefer", model, "i2", "i3")
    assert "favourites of everybody" in ask("cycles", model)
    assert json.loads(ask("explain", model, "i2", "i3", "--json"))["user"] is None


def test_cycles_reasons_and_neighbours_agree_with_the_model(model, tmp_path):
    fitted = SAD.load(model)
    answer = json.loads(ask("cycles", model, "--user", "u1", "-n", 10, "--json"))
    assert len(answer["cycles"]) == len(fitted.cycles("u1", N=10))
    assert answer["intransitivity"] == pytest.approx(fitted.intransitivity("u1"))
    assert "favourites of u1" in ask("cycles", model, "--user", "u1", "--plot", tmp_path / "ring.png")
    assert (tmp_path / "ring.png").read_bytes()[:4] == b"\x89PNG"
    reason = json.loads(ask("explain", model, "--user", "u1", "i2", "i3", "--json"))
    assert sum(reason["contributions"]) == pytest.approx(fitted.preference("u1", "i2", "i3"))
    assert "i2 over i3" in ask("explain", model, "--user", "u1", "i2", "i3")
    near = json.loads(ask("similar", model, "--item", "i2", "-n", 3, "--json"))
    assert near["ids"] == fitted.similar_items("i2", 3)[0].tolist()
    assert "u2" in ask("similar", model, "--user", "u2")
    assert "give --item ID or --user ID" in refused("similar", model, code=2)
    for method in ("wins", "liked", "markov", "nash"):
        assert method in ask("recommend", model, "--user", "u1", "--method", method)
    assert "wins" in ask("recommend", model, "--user", "u1", "--groups")


def test_user_errors_are_one_line(model, ratings, tmp_path):
    assert "unknown user 'nobody'" in refused("recommend", model, "--user", "nobody")
    assert "unknown item 'x'" in refused("prefer", model, "--user", "u1", "x", "i2")
    assert "factors must be" in refused("fit", ratings, "-o", tmp_path / "x.sad", "--factors", 0)
    refusal = refused("fit", ratings, "-o", "x", "--model", "bpr", "--rival-regularization", 0.1, code=2)
    assert "BPR has no rival factors" in refusal
    assert "is not a mapping in JSON" in refused("fit", ratings, "-o", "x", "--advanced", "adaptive", code=2)
    assert "cannot be read" in refused("recommend", ratings, "--user", "u1")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "Error" in refused("fit", empty, "-o", tmp_path / "x.sad")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    assert "Error" in refused("fit", wrong, "-o", tmp_path / "x.sad", "--user", "person")
    assert not (tmp_path / "x.sad").exists()
    refused("recommend", tmp_path / "none.sad", "--user", "u1", code=2)


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_computed_and_the_same_command_continues(tmp_path):
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((400, 500)) < 0.1)
    pl.DataFrame({"user": user, "item": item}).write_csv(tmp_path / "d.csv")
    start = [sys.executable, "-m", "sadrec", "fit", "d.csv", "--iterations", "300", "--factors", "32", "-o"]
    subprocess.run([*start, "w.sad"], cwd=tmp_path, env=os.environ, check=True)
    command = [*start, "m.sad"]
    folder = tmp_path / "m.sad.checkpoint"
    for seconds in (0.1, 0.5, 2):  # a busy machine may not have finished the first epoch
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ)
        while not folder.exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if "nothing was computed yet" not in errors:
            break
    assert process.returncode == 130 and "Run the same command again" in errors
    assert not (tmp_path / "m.sad").exists() and any(folder.iterdir())
    again = subprocess.run(command, cwd=tmp_path, env=os.environ, check=True, stderr=subprocess.PIPE, text=True)
    assert "Going on from m.sad.checkpoint" in again.stderr
    assert not folder.exists()
    one, two = SAD.load(tmp_path / "w.sad"), SAD.load(tmp_path / "m.sad")
    np.testing.assert_array_equal(one.user_factors, two.user_factors)


def test_ids_that_are_dates_or_numbers_are_understood(tmp_path):
    days = np.array(["2020-01-01", "2021-02-03", "2022-05-05"], "datetime64[D]")
    SAD.from_factors(np.eye(2), [[1, 0], [0, 1], [2, 0]], users=days[:2], items=days).save(tmp_path / "days.sad")
    answer = json.loads(ask("recommend", tmp_path / "days.sad", "--user", "2020-01-01", "-n", 1, "--json"))
    assert answer["user"] == "2020-01-01" and answer["items"] == ["2022-05-05"]
    refusal = refused("recommend", tmp_path / "days.sad", "--user", "soon", code=2)
    assert "'soon' is not a date, but the users are, such as 2020-01-01" in refusal
    SAD.from_factors(np.eye(2), np.eye(2)).save(tmp_path / "n.sad")
    assert "'1.5' is not a whole number" in refused("recommend", tmp_path / "n.sad", "--user", "1.5", code=2)


def test_options_that_would_be_ignored_are_refused(model, tmp_path):
    everybody = ("recommend", model, "--all", "-o")
    assert "-o belongs to --all" in refused("recommend", model, "--user", "u1", "-o", tmp_path / "a.parquet", code=2)
    assert "name it" in refused(*everybody, tmp_path / "a.xlsx", code=2)
    for option, value in (("--users", model), ("--user-items", model), ("--engine", "ray")):
        output = refused(*everybody, tmp_path / "a.parquet", option, value, code=2)
        assert f"{option} goes with --all -o FOLDER" in output
    assert "--workers goes with --engine ray" in refused(*everybody, tmp_path / "a", "--workers", 2, code=2)
    assert "a folder has ids only" in refused(*everybody, tmp_path / "a", "--titles", model, code=2)
    assert "--groups is for one user" in refused(*everybody, tmp_path / "a.parquet", "--groups", code=2)
    assert "leave out" in refused("recommend", model, "--user", "u1", "--groups", "--method", "wins", code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.sad", "ratings.csv"]


def test_files_for_all_users_go_into_new_folders_and_are_reported_as_json(model, tmp_path):
    path = tmp_path / "new" / "all.parquet"
    answer = json.loads(ask("recommend", model, "--all", "-o", path, "-n", 100, "--json"))
    fitted = SAD.load(model)
    assert answer == {"users": len(fitted.users), "N": 100, "method": "margin", "output": str(path)}
    assert len(pl.read_parquet(path)) == len(fitted.users) * len(fitted.items) - fitted.state.seen.nnz
    assert [entry.name for entry in path.parent.iterdir()] == ["all.parquet"]


@pytest.fixture
def ring(tmp_path):
    """One user and 30 items, each of which beats the next by 1 and all others by next to nothing; the last the first.

    A margin of every pair is a factor of its own: the pair's first item has appeal, its second lets that count.
    """
    items = 30
    pairs = [(i, j) for i in range(items) for j in range(i + 1, items)]
    eta, tau = np.zeros((items, len(pairs))), np.zeros((items, len(pairs)))
    for factor, (i, j) in enumerate(pairs):
        next_to = j == i + 1
        winner, loser = (j, i) if (i, j) == (0, items - 1) else (i, j)
        eta[winner, factor], tau[loser, factor] = 1.0 if next_to or winner == j else 0.01, 1.0
    path = tmp_path / "ring.sad"
    SAD.from_factors(np.ones((1, len(pairs))), eta, tau).save(path)
    return path


def test_the_picture_shows_the_whole_cycle_however_large(ring, tmp_path, monkeypatch):
    drawn = []
    plots = pytest.importorskip("sadrec.ranking.plots")
    monkeypatch.setattr(plots, "draw_cycle", lambda axes, cycle, texts: drawn.append((cycle, texts)))
    answer = json.loads(ask("cycles", ring, "--user", 0, "--plot", tmp_path / "new" / "ring.svg", "--json"))
    assert len(answer["cycles"][0]["path"]) == 30
    assert [text for _, texts in drawn for text in texts] == [str(item) for item in answer["cycles"][0]["path"]]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["ring.svg"]


def test_a_minimum_for_wins_holds_for_the_picture_too(ring, tmp_path):
    output = ask("cycles", ring, "--user", 0, "--minimum", 2, "--plot", tmp_path / "none.svg")
    assert "no cycles of wins by more than 2 among the 30 favourites of 0" in output
    refused("cycles", ring, "--user", 0, "--plot", tmp_path / "ring.xyz")
    assert not list(tmp_path.glob("*.xyz*")) and not list(tmp_path.glob(".*"))


def test_nobody_prefers_an_item_to_itself(model):
    assert "u1 is undecided between i2 and i2" in ask("prefer", model, "--user", "u1", "i2", "i2")


def test_the_demo_shows_who_predicts_better_and_draws_a_cycle(tmp_path, monkeypatch):
    monkeypatch.setattr("sadrec.cli.demo.PEOPLE", 320)
    output = ask("demo", "-o", tmp_path / "demo")
    assert "SAD (rivals learnt)" in output and "BPR finds none" in output
    assert (tmp_path / "demo" / "demo.png").read_bytes()[:4] == b"\x89PNG"


def test_the_demo_serves_dishes_that_have_titles_and_are_popular(tmp_path, monkeypatch):
    from sadrec import SAD

    given = {}
    monkeypatch.setattr("sadrec.cli.demo.PEOPLE", 60)
    monkeypatch.setattr("sadrec.cli.serve.serve", lambda model, *where, **files: given.update(files, model=model) or 0)
    ask("demo", "--serve", "-o", tmp_path / "demo")
    assert pl.read_csv(given["items"])["title"][:2].to_list() == ["Smoky ramen", "Crispy ramen"]
    served = SAD.load(given["model"])
    assert len(served.items) == 300
    assert np.ptp(served.scores(served.users).mean(axis=0)) > 1


def test_an_interrupted_fit_of_comparisons_keeps_its_checkpoints(tmp_path, monkeypatch):
    rows = "\n".join(f"ann,{i % 7},{(i * 3 + 1) % 7}" for i in range(300) if i % 7 != (i * 3 + 1) % 7)
    (tmp_path / "games.csv").write_text(f"judge,winner,loser\n{rows}\n")
    from sadrec.training.loop import SafeInterrupt

    sweeps = []

    def press(self):
        sweeps.append(1)
        if len(sweeps) == 10:
            raise KeyboardInterrupt

    monkeypatch.setattr(SafeInterrupt, "check", press)
    arguments = ["fit", str(tmp_path / "games.csv"), "-o", str(tmp_path / "m.sad"), "--quiet"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 130 and list((tmp_path / "m.sad.checkpoint").glob("*.checkpoint"))
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0 and not (tmp_path / "m.sad.checkpoint").exists()
    assert len(SAD.load(tmp_path / "m.sad").state.history) == 80


def test_a_second_fit_of_the_same_output_leaves_the_folder_of_the_first_alone(ratings, tmp_path):
    folder = tmp_path / "m.sad.checkpoint"
    with locked(folder):
        assert "in use by another process" in ask("fit", ratings, "-o", tmp_path / "m.sad", "--iterations", 2, code=1)
        assert (folder / ".lock").is_file()
        with pytest.raises(CheckpointError, match=f"id {os.getpid()}"), locked(folder):
            pass
    ask("fit", ratings, "-o", tmp_path / "m.sad", "--iterations", 2)
    assert not folder.exists()


def test_fit_takes_features_and_knows_items_without_history(ratings, tmp_path):
    kinds = tmp_path / "items.csv"
    kinds.write_text("item,price,kinds\n" + "".join(f"i{i},{i % 4},{'a|b' if i % 2 else 'b'}\n" for i in range(17)))
    people = tmp_path / "users.csv"
    people.write_text("user,club\n" + "".join(f"u{u},{'x' if u % 2 else 'y'}\n" for u in range(21)))
    given = ("--item-features", kinds, "--user-features", people, "--tags", "kinds")
    output = ask("fit", ratings, "-o", tmp_path / "m.sad", "--factors", 4, "--iterations", 3, "--quiet", *given)
    assert "2 columns of features of items; 2 items have no history" in output
    assert "2 users have no history" in output  # one of them has no ratings
    assert "i16" in ask("recommend", tmp_path / "m.sad", "--user", "u20", "-n", 17)
    assert "features" in ask("explain", tmp_path / "m.sad", "--user", "u0", "i16", "i1")
    output = ask("fit", ratings, "-o", tmp_path / "n.sad", "--item-features", kinds, "--tags", "colour", code=2)
    assert "no table of features has such a column" in output


def test_fit_takes_features_of_numbered_items_as_text(tmp_path):
    rows = [(f"u{u}", f"{i:02}", 1) for u in range(12) for i in range(12) if (u + i) % 3]
    pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_csv(tmp_path / "r.csv")
    pl.DataFrame({"item": [f"{i}" for i in range(10, 14)], "size": [1.0, 2.0, 5.0, 6.0]}).write_csv(tmp_path / "i.csv")
    ask("fit", tmp_path / "r.csv", "-o", tmp_path / "m.sad", "--iterations", 2, "--item-features", tmp_path / "i.csv")
    assert "13" in SAD.load(tmp_path / "m.sad").items


def test_a_reader_of_the_output_may_stop_early(model):
    command = [sys.executable, "-m", "sadrec", "recommend", str(model), "--user", "u1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, "")


def test_a_damaged_model_is_replaced_where_that_is_said(ratings, tmp_path):
    path = tmp_path / "m.sad"
    path.write_bytes(b"half a mod")
    fit = ("fit", ratings, "-o", path, "--factors", 4, "--iterations", 3)
    assert "exists but is not a sadrec model" in refused(*fit, code=2)
    ask(*fit, "--overwrite")
    assert SAD.load(path).users.size
