"""From data of any kind to a trainer: ids brought together, positives and given pairs laid out, settings resolved."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sadrec.data import Comparisons, Interactions
from sadrec.data.ids import IdArray, Ids
from sadrec.ranking import Parameters
from sadrec.training.checkpoint import fingerprint
from sadrec.training.given import Pairs
from sadrec.training.samplers import Disliked, Ordered, PairSource, PopularRivals, Stated
from sadrec.training.settings import DEFAULTS, Kind, Settings, default_blocks, defaults
from sadrec.training.validation import held_out_pairs

Floats = NDArray[np.float32]
Feedback = Interactions | Comparisons


@dataclass(frozen=True)
class Lesson:
    """What a model is to learn from, in terms of rows: everything but the parameters and the settings."""

    users: Ids
    items: Ids
    matrix: Any | None  # CSR of interactions over these ids, or None
    weights: Floats | None  # one per stored entry of the matrix
    has_ratings: bool
    comparisons: Pairs | None
    disliked: Any | None = None  # CSR over these ids, its entries also in the matrix, with weight 0

    @property
    def kind(self) -> Kind:
        """What decides the defaults: interactions, where there are any."""
        return "comparisons" if self.matrix is None else "interactions"

    @property
    def triples(self) -> int:
        """How many interactions and comparisons there are."""
        return (0 if self.matrix is None else self.matrix.nnz) + len(self.comparisons or ())

    def fingerprint(self) -> str:
        """Return a digest of all of it."""
        matrix, pairs = self.matrix, self.comparisons
        arrays = [self.users.array, self.items.array, self.weights]
        arrays += [None] * 3 if matrix is None else [matrix.indptr, matrix.indices, matrix.data]
        arrays += [None] * 4 if pairs is None else [pairs.user, pairs.winner, pairs.loser, pairs.weight]
        arrays += [] if self.disliked is None else [self.disliked.indptr, self.disliked.indices]
        return fingerprint(*arrays)


def joined(known: IdArray | None, *more: IdArray) -> IdArray:
    """Return the known ids followed by those of ``more`` that are new, in the order they come."""
    result = known
    for ids in more:
        if result is None:
            result = ids
        elif not np.array_equal(result, ids):
            if result.dtype.kind != ids.dtype.kind and len(result) and len(ids):
                raise TypeError(
                    f"ids of two kinds meet, {result[0].item()!r} and {ids[0].item()!r}: convert one side first"
                )
            fresh = ids[~np.isin(ids, result)]
            result = np.concatenate((result, fresh)) if len(fresh) else result
    if result is None:
        raise ValueError("there is no data to learn from")
    return result


def over_ids(data: Interactions, users: Ids, items: Ids) -> Any:
    """Return the matrix of the interactions with the rows and columns that these ids give it."""
    if np.array_equal(data.users, users.array) and np.array_equal(data.items, items.array):
        return data.matrix
    matrix = data.matrix.tocoo()
    row, column = users.positions(data.users)[matrix.row], items.positions(data.items)[matrix.col]
    return csr_with_zeros(row, column, matrix.data, (len(users), len(items)))


def csr_with_zeros(row: NDArray[Any], column: NDArray[Any], values: Floats, shape: tuple[int, int]) -> Any:
    """Make a CSR matrix of distinct entries, keeping explicit zeros."""
    order = np.lexsort((column, row))
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=indptr[1:])
    return sp.csr_matrix((values[order], column[order].astype(np.int32), indptr), shape=shape)


def pairs_over_ids(data: Comparisons, users: Ids, items: Ids) -> Pairs:
    """Return the comparisons as triples of rows."""
    user, item = (np.asarray(ids.positions(own), np.int32) for ids, own in ((users, data.users), (items, data.items)))
    return Pairs(user[data.user_index], item[data.winner_index], item[data.loser_index], data.weight)


def lesson(
    data: Feedback,
    comparisons: Comparisons | None = None,
    weights: Any = None,
    dislikes: float | Interactions | None = None,
    users: IdArray | None = None,
    items: IdArray | None = None,
) -> Lesson:
    """Bring the data of one fit together.

    Parameters
    ----------
    data
        Interactions or comparisons.
    comparisons
        Comparisons beside interactions.
    weights
        One per interaction, in the order of ``data.matrix``.
    dislikes
        Ratings below this number, or these pairs, are disliked.
    users, items
        Ids that come first (those of a model to start from).
    """
    parts = [part for part in (data, comparisons, dislikes) if isinstance(part, (Interactions, Comparisons))]
    all_users = Ids(joined(users, *(part.users for part in parts)), what="user")
    all_items = Ids(joined(items, *(part.items for part in parts)), what="item")
    matrix, pairs, checked = None, [], None
    if isinstance(data, Interactions):
        matrix = over_ids(data, all_users, all_items)
        if weights is not None:
            checked = _reordered(data, _weights(weights, data), all_users, all_items)
    elif weights is not None:
        raise ValueError("weights belong to interactions; give comparisons their own weight column")
    pairs = [
        pairs_over_ids(part, all_users, all_items) for part in parts if isinstance(part, Comparisons) and len(part)
    ]
    stated = Pairs.concatenate(pairs) if pairs else None
    has_ratings = isinstance(data, Interactions) and data.has_ratings
    found = Lesson(all_users, all_items, matrix, checked, has_ratings, stated)
    _refuse_nothing(found)
    return found if dislikes is None else with_dislikes(found, dislikes)


def _refuse_nothing(found: Lesson) -> None:
    if len(found.items) < 2:
        raise ValueError(f"a preference needs two items, and there is only {len(found.items)}: give data on more items")
    if not found.triples:
        raise ValueError("there is nothing to learn from: no interaction and no comparison")


def _weights(weights: Any, data: Interactions) -> Floats:
    if sp.issparse(weights):
        weights = weights.tocsr()
        if not np.array_equal(weights.indptr, data.matrix.indptr) or not np.array_equal(
            weights.indices, data.matrix.indices
        ):
            raise ValueError("weights given as a sparse matrix must have the entries of the interactions")
        weights = weights.data
    array = np.asarray(weights, np.float32)
    if array.shape != data.matrix.data.shape:
        raise ValueError(
            f"weights must be one per interaction, {data.matrix.nnz}, in the order of data.matrix, not {array.shape}"
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"weights must be finite and not negative, but weights[{at}] is {array[at]} ({int(bad.sum())} such in "
            "all): 0 leaves an interaction out"
        )
    return array


def _reordered(data: Interactions, weights: Floats, users: Ids, items: Ids) -> Floats:
    """Bring weights into the order that the matrix has over these ids."""
    if np.array_equal(data.users, users.array) and np.array_equal(data.items, items.array):
        return weights
    matrix = data.matrix.tocoo()
    row, column = users.positions(data.users)[matrix.row], items.positions(data.items)[matrix.col]
    return np.asarray(csr_with_zeros(row, column, weights, (len(users), len(items))).data)


def as_before(given: dict[str, Any], start: Parameters | None, settings: Settings | None) -> dict[str, Any]:
    """Fill settings left at None from the fit that is gone on from; a bias stays, or stays away, in any case."""
    result = dict(given)
    if settings is not None:
        for name in DEFAULTS["interactions"]:
            result[name] = getattr(settings, name) if result.get(name) is None else result[name]
    if start is not None and result.get("bias") is None:
        result["bias"] = start.item_bias is not None
    return result


def resolve(given: dict[str, Any], found: Lesson, learn_rivals: bool, seed: int) -> Settings:
    """Replace settings left at None by what suits the kind of data, and check all of them."""
    values = {name: value for name, value in given.items() if name not in ("num_threads", "random_state")}
    size = len(found.users), len(found.items), found.triples
    for name, default in defaults(found.kind, *size).items():
        if values.get(name) is None:
            values[name] = default
    if given.get("negative_candidates") is None and values.get("negative_sampling") == "popular":
        values["negative_candidates"] = 1
    if values.get("blocks") is None:
        values["blocks"] = default_blocks(found.kind, *size)
    values.setdefault("adaptive", False)
    settings = Settings(**_plain(values), learn_rivals=learn_rivals, seed=seed)
    if settings.order_share > 0 and not found.has_ratings:
        raise ValueError(
            f"order_share={settings.order_share} asks for the order inside ratings, but the data has none: give "
            "interactions with ratings, or leave order_share at 0"
        )
    most = max(len(found.items) // 2, 1)
    if settings.blocks > most and positives(found, settings) is not None:
        raise ValueError(
            f"blocks must be at most {most} for {len(found.items)} items, not {settings.blocks}: rivals are drawn "
            "inside a block, and one of a single item has none"
        )
    return settings


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Turn numpy's numbers into Python's, so that settings can be written as JSON."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def sources(found: Lesson, settings: Settings) -> list[PairSource]:
    """Return where given pairs come from."""
    result: list[PairSource] = [] if found.comparisons is None else [Stated(found.comparisons)]
    if found.matrix is not None and settings.negative_sampling == "popular" and settings.order_share < 1:
        result.append(PopularRivals(rows_of(found.matrix), weights(found, settings), len(found.items)))
    if found.disliked is not None and found.matrix is not None:
        liked = only(found.matrix, found.weights != 0)
        rows = rows_of(liked), rows_of(found.matrix), rows_of(found.disliked)
        result.append(Disliked(*rows, len(found.items)))
    if settings.order_share > 0 and found.matrix is not None:
        q = settings.order_share
        per_item = 1.0 if q == 1 else q / (1 - q)
        matrix = told_apart(found)
        result.append(Ordered(matrix.indptr, matrix.indices, matrix.data, per_item))
    return result


def told_apart(found: Lesson) -> Any:
    """Return the interactions whose order is learnt: those that count, and what was disliked."""
    if found.matrix is None or found.weights is None or found.weights.all():
        return found.matrix
    told = found.weights != 0
    if found.disliked is not None:
        told |= np.isin(_keys(found.matrix), _keys(found.disliked))
    return only(found.matrix, told)


def positives(found: Lesson, settings: Settings) -> tuple[NDArray[Any], NDArray[Any], Floats | None] | None:
    """Return what is trained against drawn rivals, if anything."""
    if found.matrix is None or settings.order_share == 1 or settings.negative_sampling == "popular":
        return None
    return *rows_of(found.matrix), weights(found, settings)


def weights(found: Lesson, settings: Settings) -> Floats | None:
    """Return how much each interaction counts; None: all the same."""
    if found.matrix is None or not settings.user_balance:
        return found.weights
    own = np.ones(found.matrix.nnz, np.float32) if found.weights is None else found.weights
    row = found.matrix.tocoo().row
    counts = np.bincount(row[own != 0], minlength=len(found.users))
    return np.asarray(own * balance(counts, settings.user_balance).astype(np.float32)[row])


def balance(counts: NDArray[Any], power: float) -> NDArray[np.float64]:
    """Return what an interaction of each user weighs: ``counts ** -power``, times what makes their mean 1.

    >>> balance(np.array([1, 4, 0]), 0.5)
    array([1.66666667, 0.83333333, 1.66666667])
    """
    raw = np.maximum(counts, 1.0) ** -power
    return np.asarray(raw * (counts.sum() / max(float(counts @ raw), 1e-300) if counts.any() else 1.0))


def rows_of(matrix: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``(indptr, indices)`` of a CSR matrix in the types that kernels are compiled for."""
    indices = matrix.indices.astype(np.int32, copy=False).view()
    indices.flags.writeable = False
    return matrix.indptr.astype(np.int64), indices


def only(matrix: Any, mask: Any) -> Any:
    """Return a CSR matrix with the entries that the mask, one per stored entry, picks."""
    coo = matrix.tocoo()
    return csr_with_zeros(coo.row[mask], coo.col[mask], coo.data[mask], matrix.shape)


def validation_pairs(data: Feedback, found: Lesson, seed: int) -> Pairs:
    """Turn held-out data into triples; users and items must be known."""
    if isinstance(data, Comparisons):
        return pairs_over_ids(data, found.users, found.items)
    held_out = over_ids(data, found.users, found.items)
    known = held_out.copy()
    known.data = np.ones_like(known.data)
    if found.matrix is not None:
        seen = found.matrix.copy()
        seen.data = np.ones_like(seen.data)
        known = (known + seen).tocsr()
    known.sort_indices()
    pairs = held_out_pairs(rows_of(known), rows_of(held_out), len(found.items), seed)
    if not len(pairs):
        raise ValueError("the validation set holds nothing to check the model on")
    return pairs


def still(factors: Any, found: Lesson) -> None:
    """Put the vectors of users of whom nothing is known to zero: no noise is passed off as their taste."""
    known = np.zeros(len(found.users), bool)
    if found.matrix is not None:
        known |= np.diff(found.matrix.indptr) > 0
    if found.comparisons is not None:
        known[found.comparisons.user] = True
    factors.users[~known] = 0


def beside_seen(found: Lesson, seen: Any) -> Lesson:
    """Add what is known besides, with weight 0: never drawn as a rival, but not trained on.

    A pair that is in both keeps its new entry.
    """
    if found.matrix is None:
        return found
    old, new = seen.tocoo(), found.matrix.tocoo()
    row, column, values = (
        np.concatenate(both) for both in ((new.row, old.row), (new.col, old.col), (new.data, old.data))
    )
    own = np.ones(new.nnz, np.float32) if found.weights is None else found.weights
    weights = np.concatenate((own, np.zeros(old.nnz, np.float32)))
    _, first = np.unique(row.astype(np.int64) * len(found.items) + column, return_index=True)
    shape = (len(found.users), len(found.items))
    return replace(
        found,
        matrix=csr_with_zeros(row[first], column[first], values[first], shape),
        weights=csr_with_zeros(row[first], column[first], weights[first], shape).data,
    )


def enlarged(seen: Any, users: int, items: int) -> Any:
    """Return what was seen with empty rows and columns for users and items that came later."""
    rows = np.full(users - seen.shape[0], seen.indptr[-1], seen.indptr.dtype)
    return sp.csr_matrix((seen.data, seen.indices, np.append(seen.indptr, rows)), shape=(users, items))


def with_dislikes(found: Lesson, dislikes: float | Interactions) -> Lesson:
    """Mark what people disliked: ratings below a number, or the pairs of other interactions.

    A disliked pair is known and not trained on as something liked, even when it is among the interactions too.
    """
    if found.matrix is None:
        raise ValueError("dislikes belong to interactions; in comparisons the disliked item is the loser")
    if isinstance(dislikes, bool) or (isinstance(dislikes, float) and np.isnan(dislikes)):
        raise ValueError(
            f"dislikes must be a number, below which a rating is a dislike, or interactions, not {dislikes!r}"
        )
    matrix = found.matrix
    if isinstance(dislikes, Interactions):
        given = over_ids(dislikes, found.users, found.items).copy()
        given.data = np.zeros_like(given.data)  # rated below everything that is liked
        found = beside_seen(found, given)
        matrix = found.matrix
        disliked = np.isin(_keys(matrix), _keys(given))
    elif not found.has_ratings:
        raise ValueError(
            f"dislikes={dislikes!r} means ratings below {dislikes!r}, but the data has no ratings: give the disliked "
            "pairs as interactions of their own"
        )
    else:
        disliked = matrix.data < float(dislikes)
    if not disliked.any():
        raise ValueError(f"nothing is disliked: no rating lies below {dislikes!r}")
    if disliked.all():
        raise ValueError("everything is disliked, and nothing is left to learn from: give a lower number")
    weights = np.ones(len(disliked), np.float32) if found.weights is None else found.weights.copy()
    weights[disliked] = 0
    return replace(found, weights=weights, disliked=only(matrix, disliked))


def marked(found: Lesson) -> Any:
    """Return what was seen, with -1 for what was disliked; None where nothing but comparisons is known."""
    if found.matrix is None or found.disliked is None:
        return found.matrix
    seen = found.matrix.copy()
    seen.data[np.isin(_keys(seen), _keys(found.disliked))] = -1
    return seen


def liked_only(seen: Any) -> Any:
    """Return what was seen without what was disliked."""
    return seen if seen is None or not (seen.data < 0).any() else only(seen, seen.data >= 0)


def _keys(matrix: Any) -> NDArray[np.int64]:
    """Return a number for each stored entry that tells its row and column."""
    coo = matrix.tocoo()
    return np.asarray(coo.row.astype(np.int64) * matrix.shape[1] + coo.col)


def checked_seen(seen: Any, shape: tuple[int, int]) -> Any:
    """Return what was seen as a CSR matrix of the right shape, or None."""
    if seen is None:
        return None
    matrix = sp.csr_matrix(seen, dtype=np.float32)
    if matrix.shape != shape:
        raise ValueError(f"seen must have the shape (users, items), {shape}, not {matrix.shape}")
    return matrix if matrix.has_sorted_indices else matrix.sorted_indices()
