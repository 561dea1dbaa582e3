"""The models of the lists: each is fitted to what training sees, and scores the users and items that are ranked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sadrec import BPR, SAD, Interactions
from sadrec.data import Ids
from studies.baselines import make
from studies.features.data import Doubles, Featured, encoded
from studies.features.splits import Split

Settings = Mapping[str, Any]
Scores = NDArray[Any]
Predict = Callable[[], Scores]
Fit = Callable[[Split, Featured, Settings, int], Predict]

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Model:
    """A model of the table.

    Attributes
    ----------
    title
        What the table calls it.
    fit
        ``fit(split, featured, settings, seed)`` learns and returns what gives the scores of ``split.test``'s users
        (rows) and items (columns).
    tried
        The settings it chooses among on validation data.
    tasks
        What it can do: "items" and "users" are those without history, "warm" is everybody with some.
    """

    title: str
    fit: Fit
    tried: Sequence[Settings] = ({},)
    tasks: tuple[str, ...] = ("items", "users", "warm")


def ridge(known: Doubles, values: Doubles, new: Doubles, penalty: float, weight: Doubles | None = None) -> Doubles:
    """Regress ``values`` on features and return what is predicted for new rows; the intercept is not shrunk.

    >>> ridge(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]), np.array([[3.0]]), 1e-9).round(6)
    array([[7.]])
    """
    w = np.ones(len(known)) if weight is None else weight / weight.mean()
    centre, level = w @ known / w.sum(), w @ values / w.sum()
    x, y = known - centre, values - level
    gram = (x.T * w) @ x + penalty * np.eye(x.shape[1])
    return np.asarray((new - centre) @ np.linalg.solve(gram, (x.T * w) @ y) + level)


def only(frame: pl.DataFrame, *ids: Any) -> pl.DataFrame:
    """Return the rows of a frame whose ids are among some."""
    wanted = np.unique(np.concatenate([np.asarray(some) for some in ids]))
    return frame.filter(pl.col(frame.columns[0]).is_in(wanted.tolist()))


@dataclass(frozen=True)
class _Side:
    """Features of the known and of those ranked, in the order of the training part and of the test part."""

    known: Doubles
    ranked: Doubles


def _side(frame: pl.DataFrame, known: Any, ranked: Any, bends: int = 0) -> _Side:
    ids = Ids(frame[:, 0].to_numpy())
    matrix = encoded(frame, Ids(known).known(ids.array), bends)
    return _Side(matrix[ids.positions(known)], matrix[ids.positions(ranked)])


def _is_new(split: Split) -> tuple[bool, bool]:
    """Tell whether the users that are ranked for, and the items that are ranked, have no history."""
    users, items = Ids(split.train.users), Ids(split.train.items)
    return not users.known(split.test.users).any(), not items.known(split.test.items).any()


def _touched(data: Interactions) -> Doubles:
    """Return a dense matrix with a 1 for every interaction."""
    dense = np.zeros(data.shape)
    dense[np.repeat(np.arange(data.shape[0]), np.diff(data.matrix.indptr)), data.matrix.indices] = 1.0
    return dense


def _popularity(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    known = Ids(split.train.items)
    there = known.known(split.test.items)
    counts = np.zeros(split.test.shape[1])
    counts[there] = np.bincount(split.train.matrix.indices, minlength=len(known))[
        known.positions(split.test.items[there])
    ]
    return lambda: np.tile(counts, (split.test.shape[0], 1))


def _genre_popularity(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    """Score an item by how popular the items of its genres are, in the mean over its genres."""
    column = "genres" if "genres" in featured.items.columns else "kind"
    genres = only(featured.items, split.train.items, split.test.items).select("item", column)
    side = _side(genres, split.train.items, split.test.items)
    counts = np.bincount(split.train.matrix.indices, minlength=split.train.shape[1])
    mean = counts @ side.known / np.maximum(side.known.sum(axis=0), 1)
    size = side.ranked.sum(axis=1)
    scores = np.where(size > 0, side.ranked @ mean / np.maximum(size, 1), counts.mean())
    return lambda: np.tile(scores, (split.test.shape[0], 1))


def _truth(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    """Score by what features tell of the new ones, and by all there is to know of the others."""
    assert featured.truth is not None
    scores = featured.truth["users" if _is_new(split)[0] else "items"][split.test.users][:, split.test.items]
    return lambda: scores


def _feature_only(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    """Regress every cell of the matrix on the features of items, user by user; for new users on those of users."""
    touched, penalty, bends = _touched(split.train), float(settings["penalty"]), settings.get("bends", 0)
    if _is_new(split)[0]:
        assert featured.users is not None
        people = _side(featured.users, split.train.users, split.test.users, bends)
        predicted = ridge(people.known, touched, people.ranked, penalty)
        return lambda: predicted
    known, ranked = split.train.items, split.test.items
    things = _side(only(featured.items, known, ranked), known, ranked, bends)
    of_items = ridge(things.known, touched.T, things.ranked, penalty)
    return lambda: of_items.T


def _regressed_bpr(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    """Fit BPR to those with history, then regress its factors and biases on features, weighted by interactions."""
    model = BPR(num_threads=1, random_state=seed).fit(split.train, show_progress=False)
    penalty, bends = float(settings["penalty"]), settings.get("bends", 0)
    new_users, new_items = _is_new(split)
    xi = np.asarray(model.user_factors, np.float64)
    bias = np.zeros(len(split.train.items)) if model.item_bias is None else model.item_bias
    eta = np.column_stack([model.item_factors, bias]).astype(np.float64)

    def predict() -> Scores:
        ranked, people = eta, xi
        if new_items:
            known, new = split.train.items, split.test.items
            side = _side(only(featured.items, known, new), known, new, bends)
            weight = np.bincount(split.train.matrix.indices, minlength=len(eta)).astype(np.float64)
            ranked = ridge(side.known, eta, side.ranked, penalty, weight)
        if new_users:
            assert featured.users is not None
            side = _side(featured.users, split.train.users, split.test.users, bends)
            people = ridge(side.known, xi, side.ranked, penalty, np.diff(split.train.matrix.indptr).astype(np.float64))
        return np.asarray(people @ ranked[:, :-1].T + ranked[:, -1])

    return predict


def _answer(model: Any, split: Split) -> Scores:
    """Ask a fitted model for the scores of the test part."""
    columns = Ids(model.items).positions(split.test.items)
    return np.asarray(model.scores(split.test.users)[:, columns])


def _lightfm(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    settings = dict(settings)
    bends, years = settings.pop("bends", 0), settings.pop("years", False)
    items = only(featured.items, split.train.items, split.test.items)
    if years:
        items = items.with_columns(pl.col("year").cast(pl.String))
    ids = items["item"].to_numpy()
    given: dict[str, Any] = {"item_features": (ids, encoded(items, Ids(split.train.items).known(ids), bends))}
    if featured.users is not None:
        ids = featured.users["user"].to_numpy()
        given["user_features"] = (ids, encoded(featured.users, Ids(split.train.users).known(ids), bends))
    model = make("lightfm", random_state=seed, **settings).fit(split.train, **given)
    return lambda: _answer(model, split)


def _sad(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    model = SAD(num_threads=1, random_state=seed, **settings)
    given: dict[str, Any] = {"item_features": only(featured.items, split.train.items, split.test.items)}
    if featured.users is not None:
        given["user_features"] = only(featured.users, split.train.users, split.test.users)
    model.fit(split.train, show_progress=False, **given)
    return lambda: _answer(model, split)


def _plain_sad(split: Split, featured: Featured, settings: Settings, seed: int) -> Predict:
    model = SAD(num_threads=1, random_state=seed, **settings).fit(split.train, show_progress=False)
    return lambda: _answer(model, split)


# Numbers that bend at deciles, as Features lets them; for LightFM also a column for each year.
_BENT = {"bends": 9}
_BY_PENALTY: tuple[Settings, ...] = tuple({"penalty": penalty} for penalty in PENALTIES)
_BY_PENALTY_BENT: tuple[Settings, ...] = tuple({**one, **_BENT} for one in _BY_PENALTY)
_LIGHTFM: tuple[Settings, ...] = tuple(
    {"own_factors": own, "factors": factors, "iterations": iterations}
    for own, factors, iterations in (
        (True, 64, 30),
        (True, 16, 30),
        (False, 64, 30),
        (False, 16, 10),
    )
)
_LIGHTFM += tuple({**_LIGHTFM[2], **more} for more in (_BENT, {"years": True}))

MODELS: Mapping[str, Model] = {
    "popularity": Model("popularity (no history: any order)", _popularity),
    "genres": Model("popularity of the genres", _genre_popularity, tasks=("items",)),
    "feature-only": Model(
        "features alone: ridge", _feature_only, _BY_PENALTY + _BY_PENALTY_BENT, tasks=("items", "users")
    ),
    "bpr-ridge": Model(
        "BPR(), then ridge of its factors",
        _regressed_bpr,
        _BY_PENALTY[1:4] + _BY_PENALTY_BENT[2:3],
        tasks=("items", "users"),
    ),
    "lightfm": Model("LightFM (hybrid)", _lightfm, _LIGHTFM),
    "sad": Model("SAD() without features", _plain_sad, tasks=("warm",)),
    "sad-features": Model("SAD() with features", _sad),
    "truth": Model("the truth but for what features do not tell (simulated data)", _truth, tasks=("items", "users")),
}
"""The models of lists by name."""
