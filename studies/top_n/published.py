"""Gowalla as the papers on graph recommendation use it: their split, their measures, and what they report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from sadrec import Interactions

GOWALLA_FIGURES: Mapping[str, Mapping[str, float]] = {
    "BPR-MF": {"recall@20": 0.1627, "ndcg@20": 0.1378},
    "EASE": {"recall@20": 0.1765, "ndcg@20": 0.1467},
    "LightGCN": {"recall@20": 0.1820, "ndcg@20": 0.1547},
    "MF-CCL": {"recall@20": 0.1837, "ndcg@20": 0.1493},
    "UltraGCN": {"recall@20": 0.1862, "ndcg@20": 0.1580},
    "SimpleX": {"recall@20": 0.1872, "ndcg@20": 0.1557},
}
"""The leaderboard of BARS, which ran these models itself on this split. We did not."""


@dataclass(frozen=True, eq=False)
class PublishedSplit:
    """A split that others published, and what they report for it.

    Attributes
    ----------
    train, test
        Both with the users, items and shape of the whole.
    figures
        Measures by model, as published.
    source
        Who published them.
    """

    train: Interactions
    test: Interactions
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: str = ""


def load_gowalla(data_folder: Path | None) -> PublishedSplit:
    """Read ``gowalla/train.parquet`` and ``test.parquet`` (user, item) of the folder that holds the data sets."""
    if data_folder is None or not (data_folder / "gowalla").is_dir():
        raise ValueError("gowalla cannot be fetched: put its folder beside the other data sets, --data FOLDER")
    frames = [pl.read_parquet(data_folder / "gowalla" / f"{part}.parquet") for part in ("train", "test")]
    train, test = on_common_ids(*frames)
    return PublishedSplit(train, test, GOWALLA_FIGURES, "BARS")


def on_common_ids(train: pl.DataFrame, test: pl.DataFrame) -> tuple[Interactions, Interactions]:
    """Make interactions of both frames (user, item) with the users and items of both together.

    Examples
    --------
    >>> train = pl.DataFrame({"user": [1, 2], "item": [7, 8]})
    >>> on_common_ids(train, pl.DataFrame({"user": [1], "item": [9]}))[1]
    Interactions(2 users x 3 items, 1 interactions)
    """
    users, items = (np.union1d(train[name], test[name]) for name in ("user", "item"))

    def part(frame: pl.DataFrame) -> Interactions:
        rows, columns = np.searchsorted(users, frame["user"]), np.searchsorted(items, frame["item"])
        ones = np.ones(len(frame), np.float32)
        return Interactions.from_csr(csr_matrix((ones, (rows, columns)), (len(users), len(items))), users, items)

    return part(train), part(test)
