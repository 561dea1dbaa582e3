"""``sadrec leaderboard``: a file of games in, a table, a picture or a page out."""

import json
import re

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons
from sadrec.cli import main


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("games") / "games.csv"
    one, other = np.stack([rng.permutation(9)[:2] for _ in range(500)], 1)
    draw, chance = rng.random(500), 1 / (1 + np.exp(0.4 * (one - other)))
    names = np.array(["ann", "bob", "<b>cy</b>", "dee", "eve", "fay", "gus", "hal", "ivy"])
    winner = np.where(draw < 0.1, "tie", np.where(rng.random(500) < chance, "model_a", "model_b"))
    pl.DataFrame({"model_a": names[one], "model_b": names[other], "winner": winner}).write_csv(path)
    return path


def run(*words):
    return CliRunner().invoke(main, ["leaderboard", *map(str, words)])


def done(*words):
    answer = run(*words)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_file_of_votes_becomes_a_table_in_one_command(games):
    output = done(games, "--quiet")
    first = next(line for line in output.splitlines() if line.strip().startswith("1 "))
    assert first.split()[1] == "ann"
    assert re.search(r"rank +item +strength +interval +ranks +won +tied +lost +unexplained", output)
    assert "A ranking explains" in output


def test_questions_about_one_source_speak_of_matches(games, tmp_path):
    model = tmp_path / "games.sad"
    SAD(random_state=0).fit(Comparisons.read(games, show_progress=False), show_progress=False).save(model)
    question = CliRunner().invoke(main, ["prefer", str(model), "ivy", "ann"]).output
    assert question.startswith("ann beats ivy with probability")
    assert "strongest items" in CliRunner().invoke(main, ["cycles", str(model)]).output
    assert "did you mean 'ann'?" in CliRunner().invoke(main, ["prefer", str(model), "ivy", "Ann"]).output


def test_the_table_is_the_models(games, tmp_path):
    done(games, "--quiet", "-o", tmp_path / "board.csv")
    written = pl.read_csv(tmp_path / "board.csv")
    expected = SAD(random_state=0).fit(Comparisons.read(games, show_progress=False), show_progress=False).leaderboard()
    assert written.columns == expected.columns
    assert written["item"].to_list() == expected["item"].to_list()
    assert written["upper"].to_numpy() == pytest.approx(expected["upper"].to_numpy())


def test_json_has_the_table_the_cycles_and_the_mixture(games):
    answer = json.loads(done(games, "--quiet", "--json", "-n", 3))
    assert answer["leaderboard"][0]["item"] == "ann"
    assert len(answer["leaderboard"]) == 3
    assert sum(one["share"] for one in answer["nash"]) == pytest.approx(1, abs=0.01)
    assert answer["cycles"] == []


def test_markdown_is_a_table(games, tmp_path):
    done(games, "--quiet", "-o", tmp_path / "board.md")
    lines = (tmp_path / "board.md").read_text().splitlines()
    assert lines[0].startswith("| rank | item | strength |")
    assert len(lines) == 11
    assert len({line.count("|") for line in lines}) == 1


def test_an_id_is_no_markup_in_markdown(games, tmp_path):
    done(games, "--quiet", "-o", tmp_path / "board.md")
    assert "| &lt;b&gt;cy&lt;/b&gt; |" in (tmp_path / "board.md").read_text()


def test_coefficients_of_features_are_printed_with_intervals(tmp_path):
    rng = np.random.default_rng(0)
    home = rng.choice([-1.0, 1.0], 400)
    won = rng.random(400) < 1 / (1 + np.exp(-home))
    names = np.array(list("abcd"))[[rng.permutation(4)[:2] for _ in range(400)]]
    frame = {"left": names[:, 0], "right": names[:, 1], "winner": np.where(won, *names.T), "home": home}
    pl.DataFrame(frame).write_csv(tmp_path / "games.csv")
    words = tmp_path / "games.csv", "--quiet", "--features", "home"
    assert re.search(r"home adds \+\d\.\d\d \(\+\d\.\d\d \.\. \+\d\.\d\d\) to the log-odds", done(*words))
    (coefficient,) = json.loads(done(*words, "--json"))["features"]
    assert coefficient["lower"] < 1 < coefficient["upper"]


def test_a_page_stands_alone_and_its_data_is_no_markup(games, tmp_path):
    done(games, "--quiet", "-o", tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text()
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert "<b>cy</b>" not in page
    report = json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', page)[1])
    assert "<b>cy</b>" in report["item_names"]
    assert len(report["leaderboard"]) == len(report["probability"]) == 9
    assert np.array(report["games"]).sum() == 1000
    assert report["kind"] == "contests"


def test_a_picture_is_drawn(games, tmp_path):
    pytest.importorskip("matplotlib")
    done(games, "--quiet", "--plot", tmp_path / "board.png")
    assert (tmp_path / "board.png").read_bytes()[:4] == b"\x89PNG"


def test_a_model_is_asked_as_it_is(games, tmp_path):
    data = Comparisons.read(games, show_progress=False)
    SAD(random_state=0).fit(data, show_progress=False).save(tmp_path / "m.sad")
    assert done(tmp_path / "m.sad") == done(games, "--quiet")
    refused = run(tmp_path / "m.sad", "--ties", "drop")
    assert refused.exit_code == 2
    assert "--ties" in refused.output


def test_one_judge_and_a_reference_can_be_named(tmp_path):
    votes = pl.DataFrame({"judge": ["x", "x", "y", "y", "y"], "winner": list("aabbb"), "loser": list("bcaca")})
    votes.write_csv(tmp_path / "votes.csv")
    answer = json.loads(done(tmp_path / "votes.csv", "--quiet", "--json", "--judge", "y", "--reference", "a"))
    rows = {row["item"]: row for row in answer["leaderboard"]}
    assert rows["b"]["wins"] == 3
    assert rows["a"]["strength"] == pytest.approx(0, abs=1e-9)


def test_titles_are_shown(games, tmp_path):
    (tmp_path / "titles.csv").write_text("item,title\nann,Ann the Great\n")
    assert "Ann the Great" in done(games, "--quiet", "--titles", tmp_path / "titles.csv")
    done(games, "--quiet", "--titles", tmp_path / "titles.csv", "-o", tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv")["title"][0] == "Ann the Great"


@pytest.mark.parametrize(("name", "content", "words", "message"), [
    ("clicks.csv", "user,item\n1,2\n1,3\n", (), "--winner"),
    ("votes.csv", "winner,loser\na,b\n", ("-o", "board.txt"), ".html"),
    ("votes.csv", "winner,loser\na,b\n", ("--judge", "7"), "7"),
    ("votes.csv", "winner,loser\na,b\n", ("--reference", "zz"), "zz"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_a_remedy(tmp_path, name, content, words, message):
    (tmp_path / name).write_text(content)
    answer = run(tmp_path / name, "--quiet", *words)
    assert answer.exit_code != 0
    assert message in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize("name", ["notes.html", "notes.md", "notes.csv"])
def test_a_file_that_is_no_leaderboard_is_not_written_over(games, tmp_path, name):
    (tmp_path / name).write_text("my notes")
    assert run(games, "--quiet", "-o", tmp_path / name).exit_code == 2
    assert (tmp_path / name).read_text() == "my notes"


@pytest.mark.parametrize("name", ["board.html", "board.md", "board.csv", "board.parquet"])
def test_an_earlier_leaderboard_is_written_over(games, tmp_path, name):
    for _ in range(2):
        done(games, "--quiet", "-o", tmp_path / name)
