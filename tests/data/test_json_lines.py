"""JSON lines are read as any other table: the answers that the service keeps are comparisons for the next fit."""

import gzip

import pytest

from sadrec import Comparisons, Interactions
from sadrec.data import DataWarning


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_answers_are_read_as_comparisons(tmp_path):
    path = write(
        tmp_path / "answers.jsonl",
        '{"user": "ann", "winner": 3, "loser": 1, "time": 1.5, "model": "ab"}',
        "",
        '{"user": "bob", "winner": 1, "loser": 2, "time": 2.5, "model": "ab"}',
    )
    comparisons = Comparisons.read(path)
    assert comparisons.to_frame().rows() == [("ann", 3, 1), ("bob", 1, 2)]
    packed = tmp_path / "answers-1.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert Comparisons.read(packed).to_frame().rows() == comparisons.to_frame().rows()


def test_ids_of_two_kinds_become_text(tmp_path):
    path = write(
        tmp_path / "a.ndjson", '{"user": 7, "winner": 3, "loser": 1}', '{"user": "visitor", "winner": 1, "loser": 2}'
    )
    assert Comparisons.read(path).users.tolist() == ["7", "visitor"]


def test_a_line_that_was_cut_is_left_out_and_said(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"user": 7, "winner": 3, "loser": 1}', '{"user": 8, "win')
    with pytest.warns(DataWarning, match="1 lines are no objects in JSON and are left out, the first is line 2"):
        assert len(Comparisons.read(path)) == 1


def test_interactions_too(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"user": 7, "item": 3, "rating": 4.5}', '{"user": 8, "item": 3, "rating": 1}')
    assert Interactions.read(path).matrix.data.tolist() == [4.5, 1.0]


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(ValueError, match="line 1 is not an object in JSON"):
        Comparisons.read(write(tmp_path / "a.jsonl", "user,winner,loser", "1,2,3"))
    with pytest.raises(ValueError, match="near line 1, 'rating' is not a number"):
        Interactions.read(write(tmp_path / "b.jsonl", '{"user": 7, "item": 3, "rating": "good"}'))
    with pytest.raises(ValueError, match="no rows"):
        Comparisons.read(write(tmp_path / "c.jsonl", ""))


def test_columns_are_found_although_the_first_line_lacks_one(tmp_path):
    """A damaged key in it made one judge of all people."""
    lines = '{"uses": 7, "winner": 3, "loser": 1}', '{"user": 8, "winner": 3, "loser": 1}'
    with pytest.raises(ValueError, match=r"a\.jsonl.*line 1"):
        Comparisons.read(write(tmp_path / "a.jsonl", *lines))
    assert Comparisons.read(write(tmp_path / "b.jsonl", *lines[1:])).users.tolist() == [8]
