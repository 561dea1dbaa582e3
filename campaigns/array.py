"""Malformed arrays at every public door that takes one: refused in one line, never taken, and never a crash.

Every trial spoils a good array (a sparse matrix of any format, positions, numbers, ids, the arrays of a file) in one
place and hands it to one door. In one of twenty trials the good array is handed over first, and must be taken.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from campaigns._subjects import answers, clicks, fitted
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec._core.files import read_arrays, write_arrays
from sadrec.evaluation import EASE, Popularity
from sadrec.models import settings_for
from sadrec.posterior import GibbsSAD
from sadrec.ranking import preference
from sadrec.ranking.belief import Point
from sadrec.ranking.rank import rank
from sadrec.ranking.top_n import ItemIndex, best_of, recommend

Spoil = Callable[[Any, Random], Any]
FORMATS = ("csr", "csr", "csc", "coo", "bsr", "lil", "dense")


class Door(NamedTuple):
    """Something that takes an array: a good one, what spoils it, and who takes it."""

    good: Any
    spoil: Spoil
    take: Callable[[Any], Any]


def _one_of(rng: Random, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# -- what spoils an array ---------------------------------------------------------------------------------------------


def _put(array: Any, value: Any, rng: Random) -> Any:
    """Return a copy with another value in one place."""
    copy = np.array(array)
    copy.reshape(-1)[int(rng.integers(copy.size))] = value
    return copy


def numbers(
    array: Any,
    rng: Random,
    least: float | None = None,
    missing: bool = False,
    any_rows: bool = False,
    longer: bool = True,
) -> Any:
    """Spoil numbers: one that is not finite or below the least, another type or another shape."""
    array = np.asarray(array, np.float64)
    kind = int(rng.integers(5))
    if kind == 0:
        return _put(array, _one_of(rng, np.inf, -np.inf, *(() if missing else (np.nan, 1e308))), rng)
    if kind == 1 and least is not None:
        return _put(array, least - _one_of(rng, 1e-3, 1.0, 1e30), rng)
    if kind == 2:
        return array.astype(_one_of(rng, str, complex, "S8", "datetime64[s]"))
    if any_rows:
        return _one_of(rng, array[0], array[None], array[..., None], array[:, :-1])
    longer_ones = (np.concatenate([array, array[:1]]),) if longer else ()
    return _one_of(rng, array[:-1], array[None], array[..., None], *longer_ones)


def _index(size: int, dtype: Any, rng: Random) -> int:
    """Return a position that does not exist."""
    limits = np.iinfo(dtype)
    low = () if limits.min == 0 else (-1, -size, limits.min)
    return int(_one_of(rng, size, size, size + 1, size + 1000, limits.max, *low))


def positions(array: Any, rng: Random, size: int, flat: bool = True) -> Any:
    """Spoil positions: one that does not exist, another type or, where they must be a list, another shape."""
    array = np.asarray(array, _one_of(rng, np.int32, np.int64, np.uint32, np.uint64))
    kind = int(rng.integers(4 if flat else 3))
    if kind < 2:
        return _put(array, _index(size, array.dtype, rng), rng)
    if kind == 2:
        return array.astype(_one_of(rng, np.float64, str, complex))
    return array[None]


def ids(array: Any, rng: Random) -> Any:
    """Spoil ids: one twice, one missing, mixed kinds, another number of them or another shape."""
    listed = np.asarray(array).tolist()
    other = [*listed]
    other[0] = _one_of(rng, None, float("nan"), "x", b"x", [1], True) if isinstance(other[1], int) else 7
    return _one_of(rng, [listed[0], *listed[:-1]], listed[:-1], [*listed, listed[0]], other, [listed], listed[0])


def _compressed(indptr: Any, indices: Any, data: Any, size: int, rng: Random) -> tuple[Any, Any, Any]:
    """Spoil one of the three arrays of a compressed matrix, whose indices are below a size."""
    kind = int(rng.integers(8))
    place = int(rng.integers(1, len(indptr) - 1))
    if kind < 3:
        return indptr, _put(indices, _index(size, indices.dtype, rng), rng), data
    if kind == 3:
        fallen = np.array(indptr)
        fallen[place] = _one_of(rng, indptr[-1] + 1, -1, np.iinfo(indptr.dtype).min, np.iinfo(indptr.dtype).max)
        return fallen, indices, data
    if kind == 4:
        ends = np.array(indptr)
        at, value = _one_of(rng, (0, 1), (0, -1), (-1, len(indices) + 1), (-1, np.iinfo(indptr.dtype).max))
        ends[at] = value
        return ends, indices, data
    if kind == 5:
        return _one_of(rng, indptr[:-1], indptr[:0], np.append(indptr, indptr[-1:]), indptr[None]), indices, data
    if kind == 6:
        parts: tuple[Any, Any, Any] = _one_of(
            rng, (indptr, indices[:-1], data), (indptr, indices, data[:-1]), (indptr, indices[None], data),
            (indptr.astype(float), indices, data), (indptr, indices.astype(float), data),
        )  # fmt: skip
        return parts
    return indptr, indices, _put(data.astype(np.float64), _one_of(rng, np.nan, np.inf, -np.inf), rng)


def _format(matrix: Any, rng: Random, dense: bool = True) -> Any:
    """Return a matrix in some format, its arrays writable."""
    name = _one_of(rng, *(FORMATS if dense else FORMATS[:-1]))
    if name == "dense":
        return matrix.toarray()
    made = sp.csr_array(matrix, copy=True)
    made = made.tobsr((2, 1)) if name == "bsr" and made.shape[0] % 2 == 0 else made.asformat(name).copy()
    if name in ("csr", "csc", "bsr") and rng.random() < 0.3:
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made if rng.random() < 0.5 else getattr(sp, f"{name}_matrix")(made)


def sparse(
    matrix: Any, rng: Random, shape: tuple[int, ...] = (0, 1), negative: bool = False, dense: bool = True
) -> Any:
    """Spoil a matrix: its arrays in any format, its numbers, and where they matter its shape and their sign."""
    kind = rng.random()
    if shape and kind < 0.1:
        return _format(_one_of(rng, *([matrix[:-1], matrix[:, :-1]][axis] for axis in shape)), rng, dense)
    if negative and kind < 0.2:
        return _format(sp.csr_array((_put(matrix.data, -1, rng), matrix.indices, matrix.indptr), matrix.shape), rng)
    made = _format(matrix, rng, dense)
    if not sp.issparse(made):
        wrong = np.asarray(made, np.float64)
        return _one_of(
            rng, _put(wrong, np.nan, rng), _put(wrong, np.inf, rng), wrong[0], wrong[None], wrong.astype(complex),
            wrong.astype(str), wrong.astype(object),
        )  # fmt: skip
    if kind > 0.93:
        made = made.astype(complex)
    elif made.format == "coo":
        side = int(rng.integers(2))
        part = ("row", "col")[side]
        places = getattr(made, part)
        wrong = _put(places, _index(made.shape[side], places.dtype, rng), rng)
        setattr(made, part, _one_of(rng, wrong, wrong, places[:-1]))
    elif made.format == "lil":
        row = int(np.argmax([len(entries) for entries in made.rows]))
        rest = made.rows[row][1:]
        made.rows[row] = _one_of(rng, [made.shape[1], *rest], [-1, *rest], rest)
    else:
        size = made.shape[1 if made.format != "csc" else 0] // (made.blocksize[1] if made.format == "bsr" else 1)
        made.indptr, made.indices, made.data = _compressed(made.indptr, made.indices, made.data, size, rng)
    return made


# -- the doors --------------------------------------------------------------------------------------------------------


def _doors(folder: Path) -> dict[str, Door]:
    """Return everything that takes an array, with models to ask."""
    data, stated = clicks(), answers()
    matrix = sp.csr_array(data.matrix)
    users, items = matrix.shape
    options: dict[str, Any] = {"show_progress": False}
    quick: dict[str, Any] = {"factors": 2, "iterations": 1, "num_threads": 1}
    model, featured, posterior = fitted("sad"), fitted("features, variational"), fitted("posterior")
    rng = np.random.default_rng(3)
    of_items, of_users = (
        sp.csr_array((rng.random((len(side), 5)) < 0.5).astype(float)) for side in (stated.items, stated.users)
    )
    parameters, weights = model.state.parameters, rng.random(matrix.nnz)
    factors = {name: np.array(getattr(model, name)) for name in ("user_factors", "item_factors", "rival_factors")}
    factors["item_bias"] = np.array(model.item_bias)
    some = sp.csr_array(matrix[:4])
    counted = partial(sparse, shape=(), negative=True)
    of_rows = partial(sparse, shape=(0,), dense=False)
    triple = np.array(stated.user_index), np.array(stated.winner_index), np.array(stated.loser_index)
    named = {"users": stated.users, "items": stated.items}
    some_users = model.users[:4]

    def indices(place: int, array: Any) -> Any:
        given = [*triple[:place], array, *triple[place + 1 :]]
        return Comparisons.from_indices(*given, **named)

    def made(place: int, array: Any) -> Any:
        given = [*triple[:place], array, *triple[place + 1 :]]
        return Comparisons(stated.user_ids, stated.item_ids, *given)

    doors = {
        "from_csr": Door(matrix, counted, Interactions.from_csr),
        "fit": Door(matrix, counted, lambda x: SAD(**quick).fit(x, **options)),
        "BPR.fit": Door(matrix, counted, lambda x: BPR(**quick).fit(x, **options)),
        "settings_for": Door(matrix, counted, lambda x: settings_for(SAD(**quick), x)),
        "GibbsSAD.fit": Door(
            matrix, counted, lambda x: GibbsSAD(1, draws=2, warmup=1, chains=1, num_threads=1).fit(x, **options)
        ),
        "partial_fit": Door(matrix, counted, lambda x: SAD.from_factors(
            *(factors[name] for name in ("user_factors", "item_factors"))).partial_fit(x, **options)),
        "validation": Door(matrix, counted, lambda x: SAD(**quick).fit(matrix, validation=x, **options)),
        "dislikes": Door(
            sp.csr_array((matrix.toarray() == 0).astype(float) * np.eye(users, items)), counted,
            lambda x: SAD(**quick).fit(matrix, dislikes=x, **options),
        ),
        "weights": Door(
            weights, partial(numbers, least=0.0), lambda x: SAD(**quick).fit(matrix, weights=x, **options)
        ),
        "sparse weights": Door(
            sp.csr_array((weights, matrix.indices, matrix.indptr), matrix.shape), partial(sparse, dense=False),
            lambda x: SAD(**quick).fit(matrix, weights=x, **options),
        ),
        "EASE.fit": Door(matrix, counted, EASE().fit),
        "Popularity.fit": Door(matrix, counted, Popularity().fit),
        "user_items": Door(some, sparse, lambda x: model.recommend(some_users, x, N=3)),
        "recalculate_user": Door(some, sparse, lambda x: model.recommend(some_users, x, N=3, recalculate_user=True)),
        "user_items of a posterior": Door(
            sp.csr_array(np.eye(4, len(stated.items))), sparse,
            lambda x: posterior.recommend(posterior.users[:4], x, N=3),
        ),
        "seen": Door(matrix, sparse, lambda x: _with(factors, "seen", x).recommend(0)),
        "from_bpr seen": Door(
            matrix, sparse, lambda x: BPR.from_bpr(factors["user_factors"], factors["item_factors"], seen=x)
        ),
        "item_features": Door(
            of_items, of_rows,
            lambda x: SAD(**quick).fit(stated, item_features=x, **options),
        ),
        "user_features": Door(
            of_users, of_rows,
            lambda x: SAD(**quick).fit(stated, user_features=(stated.users, x), **options),
        ),
        "dense features": Door(
            of_items.toarray(), partial(numbers, missing=True),
            lambda x: SAD(**quick).fit(stated, item_features=x, **options),
        ),
        "partial_fit features": Door(
            of_items[:3], partial(sparse, dense=False),
            lambda x: fitted_again(featured).partial_fit(item_features=([100, 101, 102], x)),
        ),
        "ranking.recommend": Door(some, sparse, lambda x: recommend(Point(parameters), [0, 1, 2, 3], 3, liked=x)),
        "ItemIndex.search": Door(
            some, sparse, lambda x: ItemIndex(factors["item_factors"]).search(factors["user_factors"][:4], 3, seen=x)
        ),
        "best_of": Door(some, sparse, lambda x: best_of(rng.random((4, items)), 3, seen=x)),
        "allowed": Door(
            np.arange(5), partial(positions, size=items, flat=False),
            lambda x: recommend(model.state.belief, [0], 3, allowed=x),
        ),
        "rank": Door(np.arange(5), partial(positions, size=items), lambda x: rank(Point(parameters), 0, x)),
        "preference": Door(
            np.arange(5), partial(positions, size=items, flat=False), lambda x: preference(parameters, 0, x, 1)
        ),
        "a user's vector": Door(
            factors["user_factors"][0], numbers, lambda x: rank(Point(parameters), x, np.arange(5))
        ),
        "weight of comparisons": Door(
            np.ones(len(stated)), partial(numbers, least=0.0),
            lambda x: Comparisons.from_indices(*triple, **named, weight=x),
        ),
        "ids of users": Door(data.users, ids, lambda x: Interactions.from_csr(matrix, users=x)),
        "ids of items": Door(data.items, ids, lambda x: Interactions.from_csr(matrix, items=x)),
        "ids of factors": Door(data.items, ids, partial(_with, factors, "items")),
        "Interactions": Door(
            sp.csr_matrix(matrix), _spoilt_csr, lambda x: Interactions(x, data.user_ids, data.item_ids)
        ),
    }  # fmt: skip
    for place, name in enumerate(("user_index", "winner_index", "loser_index")):
        size = len(stated.users if place == 0 else stated.items)
        doors[name] = Door(triple[place], partial(positions, size=size), partial(indices, place))
        doors[f"Comparisons, {name}"] = Door(triple[place], partial(positions, size=size), partial(made, place))
    for name, array in factors.items():
        least = 0.0 if name == "rival_factors" else None
        spoil = partial(numbers, least=least, any_rows=name == "user_factors")
        doors[name] = Door(array, spoil, partial(_with, factors, name))
    for name, one, load in (
        ("a model", model, SAD.load), ("a model with features", featured, SAD.load),
        ("a posterior", GibbsSAD(1, draws=2, warmup=1, chains=1).fit(matrix, **options), GibbsSAD.load),
        ("EASE", EASE().fit(data), EASE.load),
    ):  # fmt: skip
        one.save(folder / name)
        parts = read_arrays(folder / name, "a file")
        doors[f"file of {name}"] = Door(parts, _spoilt_file, partial(_loaded, folder / "spoilt", load))
    return doors


def _with(factors: dict[str, Any], name: str, array: Any) -> SAD:
    return SAD.from_factors(**{**factors, name: array})


def fitted_again(model: Any) -> Any:
    """Return a model that can be changed."""
    copy = model.clone()
    copy.state = model.state
    return copy


def _spoilt_csr(matrix: Any, rng: Random) -> Any:
    made = matrix.copy()
    made.indptr, made.indices, made.data = _compressed(made.indptr, made.indices, made.data, made.shape[1], rng)
    return made


def _spoilt_file(content: tuple[Any, Any], rng: Random) -> tuple[Any, Any]:
    """Spoil one of the sparse matrices of a file."""
    arrays, header = content
    prefixes = [name.removesuffix("_indptr") for name in arrays if name.endswith("_indptr")]
    copies = {name: np.array(array) for name, array in arrays.items()}
    start = _one_of(rng, *prefixes)
    names = [f"{start}_{part}" for part in ("indptr", "indices", "data")]
    indptr, indices, data = (copies[name] for name in names)
    spoilt = _compressed(indptr, indices, data, 1000, rng)  # more columns than any of them has
    return {**copies, **dict(zip(names, spoilt, strict=True))}, header


def _loaded(path: Path, load: Callable[[Path], Any], content: tuple[Any, Any]) -> Any:
    write_arrays(path, *content)
    return load(path)


def prepare(folder: Path) -> dict[str, Door]:
    """Fit the models of all doors, and have every kernel compiled."""
    with quiet_warnings():
        doors = _doors(folder)
        for door in doors.values():
            door.take(door.good)
    return doors


def trial(subject: dict[str, Door], rng: Random, folder: Path) -> Outcome:
    """Hand one spoilt array to a door."""
    name = list(subject)[int(rng.integers(len(subject)))]
    door = subject[name]
    with quiet_warnings():
        if rng.random() < 0.05:
            try:
                door.take(door.good)
            except Exception as error:
                return Outcome("good arrays refused", f"{name}: {type(error).__name__}: {error}")
        wrong = door.spoil(door.good, rng)
        try:
            door.take(wrong)
        except (ValueError, TypeError) as error:
            if "\n" in str(error) or not str(error):
                return Outcome("other errors", f"{name}: {type(error).__name__} of several lines: {error}")
            return Outcome("refused in one line")
        except Exception as error:
            return Outcome("other errors", f"{name}: {type(error).__name__}: {error}")
    return Outcome("silent acceptances", f"{name}: {vars(wrong) if sp.issparse(wrong) else wrong!r}"[:1500])


CAMPAIGN = Campaign(
    unit="malformed arrays",
    kept=("refused in one line",),
    broken=("silent acceptances", "good arrays refused", "other errors"),
    prepare=prepare,
    trial=trial,
    seconds=60,
    memory=4.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=10000)
