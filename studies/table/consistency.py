"""Which held-out pairs one model orders rightly and another wrongly: the paper's examples table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec.data import Interactions
from sadrec.evaluation import HasProbability, PairedTest, paired_test
from studies._tools import Source, check_held_out, markdown_table, source_of

Titles = Mapping[Any, str] | Sequence[str] | NDArray[Any]


@dataclass(frozen=True)
class Consistency:
    """Two models on the held-out pairs whose ratings differ.

    Attributes
    ----------
    names
        What the two models are called.
    users
        One row per user with such pairs: user, pairs, both, first, second, neither (how many pairs both models order
        rightly, only the first, only the second, neither).
    pairs
        The pairs that exactly one of the models orders rightly: user, item (rated higher), rival, their titles and
        ratings, margin and probability (null where a model offers none) of each model, and right (the model's name).
    test
        Paired test over users of the share each model orders rightly.
    """

    names: tuple[str, str]
    users: pl.DataFrame
    pairs: pl.DataFrame
    test: PairedTest

    def examples(self, n: int = 10, *, strongest: bool = False, seed: int = 0) -> pl.DataFrame:
        """Return pairs that the first model orders rightly and the second wrongly, at most one per user.

        Parameters
        ----------
        n
            How many.
        strongest
            Take those with the widest gap of ratings, then of margins; otherwise they are drawn at random, which shows
            what such pairs are like rather than the best of them.
        seed
            Of the draw.
        """
        pairs = self.pairs.filter(pl.col("right") == self.names[0])
        if strongest:
            gap = (pl.col("item_rating") - pl.col("rival_rating")).alias("gap")
            pairs = pairs.with_columns(gap, (pl.col("margin") - pl.col("rival_margin")).alias("swing"))
            pairs = pairs.sort("gap", "swing", "user", descending=[True, True, False]).drop("gap", "swing")
        elif len(pairs):
            pairs = pairs[np.random.default_rng(seed).permutation(len(pairs))]
        return pairs.unique("user", keep="first", maintain_order=True).head(n)

    def table(self, n: int = 10, *, strongest: bool = False, seed: int = 0) -> str:
        """Return :meth:`examples` in Markdown, as the paper prints them: x | p of either model."""
        first, second = self.names
        rows = [
            [
                str(row["user"]),
                f"{row['item_title']} ({row['item_rating']:g})",
                f"{row['rival_title']} ({row['rival_rating']:g})",
                _figures(row["margin"], row["probability"]),
                _figures(row["rival_margin"], row["rival_probability"]),
            ]
            for row in self.examples(n, strongest=strongest, seed=seed).iter_rows(named=True)
        ]
        header = ["user", "item (rating)", "rival (rating)", f"{first} x, p", f"{second} x, p"]
        return markdown_table(header, rows, numbers=(3, 4)) + "\n"

    def __str__(self) -> str:
        first, second = self.names
        total = self.users.select(pl.col("pairs", "both", "first", "second", "neither").sum()).row(0, named=True)
        pairs = max(1, total["pairs"])
        share = {name: f"{count / pairs:.1%}" for name, count in total.items()}
        return (
            f"Of {total['pairs']:,} held-out pairs with different ratings {first} alone orders {total['first']:,} "
            f"rightly ({share['first']}), {second} alone {total['second']:,} ({share['second']}), "
            f"both {share['both']}, neither {share['neither']}; per user the difference is "
            f"{100 * self.test.difference:+.2f} points (p = {self.test.p_t:.2g})."
        )


def _figures(margin: float, probability: float | None) -> str:
    return f"{margin:.2f}" if probability is None else f"{margin:.2f}, {probability:.2f}"


def consistency_report(
    first: object,
    second: object,
    train: Interactions,
    held_out: Interactions,
    *,
    names: tuple[str, str] = ("SAD", "BPR"),
    titles: Titles | None = None,
) -> Consistency:
    """Compare two models on the pairs (held-out item, liked item) that a user rated differently.

    Parameters
    ----------
    first, second
        Two models; see :mod:`sadrec.evaluation.protocol`.
    train, held_out
        The two parts of a split with ratings.
    names
        What the models are called in tables.
    titles
        Titles by item id, or one per item in the order of ``train.items``; by default those the data brings along, or
        else the ids.

    Raises
    ------
    ValueError
        When the data has no ratings.
    """
    check_held_out(train, held_out)
    if not train.has_ratings:
        raise ValueError("consistency needs ratings; this data only says who met what")
    sources = (source_of(first, train), source_of(second, train))
    shown = _titles(train, titles)
    users: list[tuple[Any, ...]] = []
    pairs: list[tuple[Any, ...]] = []
    rows = np.flatnonzero(np.diff(held_out.matrix.indptr))
    for row in rows.tolist():
        pair = _Ordered.of(train, held_out, row)
        if not len(pair.better):
            continue
        figures = [pair.figures(source, row) for source in sources]
        right = [margin > 0 for margin, _ in figures]
        counts = [right[0] & right[1], right[0] & ~right[1], ~right[0] & right[1], ~right[0] & ~right[1]]
        user = train.users[row].item()
        users.append((user, len(pair.better), *[int(count.sum()) for count in counts]))
        for at in np.flatnonzero(right[0] != right[1]).tolist():
            i, j = int(pair.better[at]), int(pair.worse[at])
            entry = [user, train.items[i].item(), shown[i], float(pair.ratings[at, 0])]
            entry += [train.items[j].item(), shown[j], float(pair.ratings[at, 1])]
            for margin, p in figures:
                entry += [float(margin[at]), None if p is None else float(p[at])]
            pairs.append((*entry, names[0] if right[0][at] else names[1]))
    counts_frame = pl.DataFrame(users, schema=["user", "pairs", "both", "first", "second", "neither"], orient="row")
    share = [counts_frame[name].to_numpy() / counts_frame["pairs"].to_numpy() for name in ("first", "second")]
    both = counts_frame["both"].to_numpy() / counts_frame["pairs"].to_numpy()
    columns = ["user", "item", "item_title", "item_rating", "rival", "rival_title", "rival_rating"]
    columns += ["margin", "probability", "rival_margin", "rival_probability", "right"]
    probable = [pl.Float64 if isinstance(m, HasProbability) else pl.Null for m in (first, second)]
    frame = pl.DataFrame(
        pairs,
        schema=columns,
        schema_overrides={"probability": probable[0], "rival_probability": probable[1]},
        orient="row",
        infer_schema_length=None,
    )
    return Consistency(names, counts_frame, frame, paired_test(both + share[0], both + share[1]))


def _titles(train: Interactions, titles: Titles | None) -> list[str]:
    if titles is None:
        titles = train.item_titles or {}
    if isinstance(titles, Mapping):
        return [str(titles.get(item, item)) for item in train.items.tolist()]
    if len(titles) != len(train.items):
        raise ValueError(
            f"{len(titles)} titles are given for {len(train.items)} items; give one per item, or a mapping"
        )
    return [str(title) or str(item) for title, item in zip(titles, train.items.tolist(), strict=True)]


@dataclass(frozen=True)
class _Ordered:
    """Pairs (held-out, liked) of one user with different ratings."""

    held: NDArray[np.int64]
    liked: NDArray[np.int64]
    differ: NDArray[np.bool_]  # held x liked
    held_wins: NDArray[np.bool_]  # one per pair
    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    ratings: NDArray[np.float64]  # pairs x (better, worse)

    @classmethod
    def of(cls, train: Interactions, held_out: Interactions, row: int) -> "_Ordered":
        parts = []
        for data in (held_out, train):
            span = slice(data.matrix.indptr[row], data.matrix.indptr[row + 1])
            parts.append((data.matrix.indices[span].astype(np.int64), data.matrix.data[span].astype(np.float64)))
        (held, held_ratings), (liked, liked_ratings) = parts
        differ = held_ratings[:, None] != liked_ratings[None, :]
        at, to = np.nonzero(differ)
        wins = held_ratings[at] > liked_ratings[to]
        return cls(
            held,
            liked,
            differ,
            wins,
            np.where(wins, held[at], liked[to]),
            np.where(wins, liked[to], held[at]),
            np.sort(np.stack([held_ratings[at], liked_ratings[to]], axis=1), axis=1)[:, ::-1],
        )

    def figures(self, source: Source, row: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Margin and probability that a model gives to the better of each pair."""
        x = source.block(np.array([row]))(0, self.held, self.liked)
        p = source.probability(row, self.held, self.liked, x)
        margin = np.where(self.held_wins, x[self.differ], -x[self.differ])
        if p is None:
            return margin, None
        return margin, np.where(self.held_wins, p[self.differ], 1.0 - p[self.differ])
