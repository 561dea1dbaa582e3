"""Food.com: ``RAW_interactions.csv`` and the paper's selection from it."""

import polars as pl

from sadrec.data._text import first_line
from sadrec.data.datasets.source import Source
from sadrec.data.interactions import Interactions

TOP_USERS = 20_000
MIN_PER_ITEM = 50


def food_com(source: Source, *, top_users: int | None = TOP_USERS, min_per_item: int = MIN_PER_ITEM) -> Interactions:
    """Read the original file; keep the most active users, and the recipes that enough of them reviewed.

    A rating of 0 is a review without stars; it stays (``drop_zeros`` leaves it out). Titles come from
    ``RAW_recipes.csv`` where it is there.
    """
    with source.as_file(source.one("RAW_interactions.csv")) as file:
        data = Interactions.read(file, user="user_id", item="recipe_id", rating="rating", timestamp="date")
    data = data.filter(top_users=top_users, min_per_item=min_per_item)
    recipes = source.find("RAW_recipes.csv")
    return data.with_titles(_titles(source, recipes[0])) if recipes else data


def _titles(source: Source, name: str) -> dict[int, str]:
    try:
        with source.as_file(name) as file:
            frame = pl.read_csv(file, columns=["id", "name"], schema_overrides={"id": pl.Int64, "name": pl.String})
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{name} in {source.path} has no ids and names: {first_line(error)}") from None
    return dict(frame.select("id", pl.col("name").fill_null("")).iter_rows())
