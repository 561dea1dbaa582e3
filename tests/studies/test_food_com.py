"""Food.com in the format of its makers, in small, and the paper's selection."""

from pathlib import Path

import polars as pl
import pytest

from studies.table.food_com import load_food_com
from tests.data.test_datasets import PACKS, Pack, folder_of


def food_com_files() -> dict[str, bytes]:
    rows = [
        (1, 10, "2003-02-17", 4, 'Great,\nsimple "dish"'),
        (1, 20, "2011-12-21", 5, "x"),
        (1, 30, "2011-12-21", 0, ""),
        (2, 10, "2002-12-01", 0, "no stars"),
        (2, 20, "2002-12-01", 3, "y"),
        (3, 10, "2002-12-02", 1, "z"),
        (4, 20, "2002-12-02", 1, "\n"),
    ]
    columns = ["user_id", "recipe_id", "date", "rating", "review"]
    reviews = pl.DataFrame(rows, schema=columns, orient="row").write_csv().encode()
    recipes = (
        pl.DataFrame({"name": ["soup", "cake, plain"], "id": [10, 20], "steps": ["a\nb", "c"]}).write_csv().encode()
    )
    return {"RAW_interactions.csv": reviews, "RAW_recipes.csv": recipes, "other.csv": b""}


@pytest.mark.parametrize("pack", PACKS)
def test_food_com_keeps_top_users_then_frequent_recipes(tmp_path: Path, pack: Pack) -> None:
    data = load_food_com(pack(tmp_path, food_com_files()), top_users=3, min_per_item=2)
    # Users 1, 2 and 3 (before 4, at one review each); recipe 30 has one review.
    assert data.to_frame().drop("timestamp").rows() == [(1, 10, 4), (1, 20, 5), (2, 10, 0), (2, 20, 3), (3, 10, 1)]
    assert data.item_titles is not None
    assert data.item_titles.titles(data.items).tolist() == ["soup", "cake, plain"]


def test_food_com_keeps_reviews_without_stars(tmp_path: Path) -> None:
    data = load_food_com(folder_of(tmp_path, food_com_files()), top_users=None, min_per_item=1)
    assert (len(data), (data.matrix.data == 0).sum()) == (7, 2)


def test_recipes_of_another_format_are_refused(tmp_path: Path) -> None:
    reviews = "user_id,recipe_id,date,rating,review\n" + "".join(f"{user},1,2001-01-01,5,x\n" for user in range(60))
    folder_of(tmp_path, {"RAW_interactions.csv": reviews.encode(), "RAW_recipes.csv": b"title\nsoup\n"})
    with pytest.raises(ValueError, match="has no ids and names"):
        load_food_com(tmp_path)


def test_without_its_files_food_com_says_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot be fetched without an account: get .*Kaggle"):
        load_food_com(None)
    with pytest.raises(FileNotFoundError, match="RAW_interactions"):
        load_food_com(tmp_path)
