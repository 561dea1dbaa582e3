"""Who is new: parts of the data that training never sees, drawn before anything is tuned."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sadrec import Comparisons, Interactions

SHARE = 0.1


@dataclass(frozen=True)
class Split:
    """A part to learn from, and the two parts that lists are evaluated with: what was met, and what is to be found.

    The first has nobody who is new; ``met`` and ``test`` have the users and items that are ranked, in one order.
    """

    train: Interactions
    met: Interactions
    test: Interactions


def _new(count: int, seed: int, share: float = SHARE) -> NDArray[np.bool_]:
    chosen = np.random.default_rng(seed).permutation(count)[: max(1, round(share * count))]
    return np.isin(np.arange(count), chosen)


def _part(data: Interactions, users: NDArray[np.bool_], items: NDArray[np.bool_]) -> Interactions:
    return Interactions.from_csr(data.matrix[users][:, items], data.users[users], data.items[items])


def _nothing(like: Interactions) -> Interactions:
    return replace(like, matrix=csr_matrix(like.shape, dtype=np.float32))


def some_users(data: Interactions, share: float) -> Interactions:
    """Return what a random share of the users did, with the items that they did something with.

    >>> some_users(Interactions.from_csr(np.ones((40, 3))), 0.25)
    Interactions(10 users x 3 items, 30 interactions)
    """
    users = _new(data.shape[0], 0, share)
    items = np.bincount(data.matrix[users].indices, minlength=data.shape[1]) > 0
    return _part(data, users, items)


def cold_items(data: Interactions, seed: int) -> Split:
    """Take a tenth of the items out of training; they are ranked among each other.

    >>> split = cold_items(Interactions.from_csr(np.ones((3, 20))), 0)
    >>> split.train.shape, split.test.shape, len(split.met)
    ((3, 18), (3, 2), 0)
    """
    new, everybody = _new(data.shape[1], seed), np.ones(data.shape[0], np.bool_)
    test = _part(data, everybody, new)
    return Split(_part(data, everybody, ~new), _nothing(test), test)


def cold_users(data: Interactions, seed: int) -> Split:
    """Take a tenth of the users out of training; all items are ranked for them."""
    new, everything = _new(data.shape[0], seed), np.ones(data.shape[1], np.bool_)
    test = _part(data, new, everything)
    return Split(_part(data, ~new, everything), _nothing(test), test)


def warm(data: Interactions, seed: int) -> Split:
    """Hold out a fifth of the interactions of everybody."""
    train, test = data.split(test=0.2, seed=seed)
    return Split(train, train, test)


@dataclass(frozen=True)
class Battles:
    """Comparisons to learn from, and test parts by how many of the two items training has not seen."""

    train: Comparisons
    seen: Comparisons
    one: Comparisons
    both: Comparisons


def unseen_items(data: Comparisons, seed: int, seen: float = 0.2) -> Battles:
    """Take all comparisons with a tenth of the items out of training, and a share of the others to test as well."""
    new = _new(len(data.items), seed)
    unseen = new[data.winner_index].astype(int) + new[data.loser_index]
    held = np.random.default_rng([seed, 1]).random(len(data)) < seen
    return Battles(
        *(_rows(data, mask) for mask in ((unseen == 0) & ~held, (unseen == 0) & held, unseen == 1, unseen == 2))
    )


def _rows(data: Comparisons, mask: NDArray[np.bool_]) -> Comparisons:
    """Return some of the comparisons, with all ids."""
    return Comparisons.from_indices(
        data.user_index[mask], data.winner_index[mask], data.loser_index[mask], users=data.users, items=data.items
    )
