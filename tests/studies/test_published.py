"""The split that was published with the data."""

from pathlib import Path

import numpy as np
import pytest

from studies._published import load_split
from tests.data.test_datasets import parquet_folder


def test_a_published_split_is_given_as_published(tmp_path: Path) -> None:
    train, held_out = load_split(parquet_folder(tmp_path))
    assert train.to_frame().rows() == [(1, 5, 3), (2, 7, 5)]
    assert held_out.to_frame().rows() == [(1, 7, 4), (2, 5, 0)]
    assert train.shape == held_out.shape == (2, 2)


def test_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no column 'fold'"):
        load_split(parquet_folder(tmp_path), column="fold")
    with pytest.raises(ValueError, match=r"no row of .* has split = 'learn'"):
        load_split(parquet_folder(tmp_path), train="learn")


def test_splits_of_files_with_ids_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,split\nann,x,train\nbob,y,test\n")
    train, held_out = load_split(tmp_path / "a.csv")
    assert (train.to_frame().rows(), held_out.to_frame().rows()) == ([("ann", "x")], [("bob", "y")])
    assert np.array_equal(train.users, held_out.users)
