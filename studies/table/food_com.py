"""Food.com: ``RAW_interactions.csv`` and ``RAW_recipes.csv``, and the paper's selection from them."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from sadrec.data import Interactions, Items
from sadrec.data.datasets import is_parquet_folder, parquet_folder
from sadrec.data.datasets.archive import one_of_a_name, unpacked

WHERE = "RAW_interactions.csv (shuyangli94/food-com-recipes-and-user-interactions at Kaggle)"


def load_food_com(path: Path | None, *, top_users: int | None = 20_000, min_per_item: int = 50) -> Interactions:
    """Keep the most active users (None: all), then the recipes that enough of them reviewed.

    A rating of 0 is a review without stars; it stays. A folder with ``ratings.parquet`` holds reviews, too.
    """
    if path is None:
        raise FileNotFoundError(f"Food.com cannot be fetched without an account: get {WHERE}, and pass its path")
    if is_parquet_folder(path):
        return parquet_folder(path).filter(top_users=top_users, min_per_item=min_per_item)
    with unpacked(path, ("RAW_interactions.csv",), ("RAW_recipes.csv",)) as (reviews, recipes):
        data = Interactions.read(one_of_a_name(reviews), user="user_id", item="recipe_id", timestamp="date")
        data = data.filter(top_users=top_users, min_per_item=min_per_item)
        if not recipes:
            return data
        try:
            types = {"id": pl.Int64, "name": pl.String}
            frame = pl.read_csv(recipes[0], columns=["id", "name"], schema_overrides=types).drop_nulls()
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{recipes[0]} has no ids and names: {str(error).splitlines()[0]}") from None
        return replace(data, item_titles=Items(dict(frame.select("id", "name").iter_rows())))
