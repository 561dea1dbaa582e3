"""What people call the items."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sadrec import SAD, Items
from sadrec.ranking import recommend_groups


def game():
    """A model of a game with a cycle, whose items have numbers for ids."""
    eta = [[2, 0, 0, 1], [0, 0, 1, 1], [0, 3, 0, 1], [0, 0, 0, 0]]
    tau = [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 1]]
    return SAD.from_factors([[1, 1, 1, 1]], eta, tau, users=["ann"], items=[10, 20, 30, 40])


NAMES = Items({10: "rock", 20: "paper", 30: "scissors"})


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".download"])
def test_a_table_is_read_by_the_names_of_its_columns(tmp_path, suffix):
    frame = pl.DataFrame({"movieId": [1, 2], "Title": ["Toy Story", "Jumanji"], "year": [1995, 1995]})
    path = tmp_path / f"films{suffix}"
    if suffix in (".parquet", ".download"):  # Parquet is known by its content
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    items = Items.read(path)
    assert (len(items), items[2], items.get(3)) == (2, "Jumanji", None)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (7, np.int64(7)), ("7", 7), (7.0, 7), (7, "7"), (7, 7.0), ("tea", np.str_("tea")), (" tea ", "tea"),
        (datetime.date(2026, 1, 2), np.datetime64("2026-01-02")),
        ("2026-01-02", np.datetime64("2026-01-02T00:00:00.000000")),
        ("2026-01-02T03:00:00", datetime.datetime(2026, 1, 2, 3)),
        (2**64 - 1, np.uint64(2**64 - 1)),
    ],
)  # fmt: skip
def test_an_id_is_found_however_it_is_kept(written, wanted):
    items = Items({written: "yes"})
    if isinstance(wanted, datetime.datetime):
        wanted = np.datetime64(wanted, "s")
    assert items[wanted] == "yes"


def test_leading_zeros_make_another_id():
    assert "007" not in Items({7: "seven"})


def test_frames_of_any_kind_and_columns_by_name():
    frame = pd.DataFrame({"code": ["a", "b"], "what": ["Apple", None], "image": ["a.png", "b.png"]})
    items = Items.from_frame(frame, item="code", title="what")
    assert dict(items) == {"a": "Apple"}
    assert items.picture("b") == "b.png" and items.picture("c") is None
    assert items.titles(["a", "b"]).tolist() == ["Apple", "b"]


def test_one_column_beside_the_titles_holds_the_ids(tmp_path):
    (tmp_path / "films.csv").write_text("film,title\n1,Toy Story\n")
    assert Items.read(tmp_path / "films.csv")[1] == "Toy Story"
    (tmp_path / "more.csv").write_text("film,year,title\n1,1995,Toy Story\n")
    with pytest.raises(ValueError, match="needs a column of ids"):
        Items.read(tmp_path / "more.csv")
    assert Items.read(tmp_path / "more.csv", item="film", title="year")[1] == "1995"


def test_what_a_table_lacks_is_said(tmp_path):
    (tmp_path / "x.csv").write_text("item,year\n1,1995\n")
    with pytest.raises(ValueError, match=r"needs a column of ids \(item\) and one of titles"):
        Items.read(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError, match="there is no table of items"):
        Items.read(tmp_path / "none.csv")


def test_answers_are_shown_with_titles():
    model = game()
    (cycle,) = model.cycles("ann")
    assert cycle.named(NAMES).path.tolist() == ["rock", "scissors", "paper"]
    assert "rock      beats  scissors" in str(cycle.named(NAMES))
    assert str(model.explain("ann", 10, 30).named(NAMES)).startswith("rock over scissors")
    assert str(recommend_groups(model.tournament("ann"))[0].named(NAMES)).startswith("rock | ")
    assert model.rank("ann").named(NAMES).items.tolist()[-1] == "40"


def test_an_id_with_two_titles_and_what_is_no_mapping_are_refused():
    same = pl.DataFrame({"item": [1, 1, 2], "title": ["a", "a", "b"]})
    assert Items.from_frame(same)[1] == "a"
    with pytest.raises(ValueError, match="the id '1' has two different rows"):
        Items.from_frame(same.with_columns(title=pl.Series(["a", "c", "b"])))
    for given in (["a"], same):
        with pytest.raises(TypeError, match=r"Items\.from_frame"):
            Items(given)
