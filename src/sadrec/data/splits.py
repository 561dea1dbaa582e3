"""Which stored interactions are held out: every function returns a mask over the entries of the matrix.

All randomness comes from the seed alone, drawn in the order of the matrix, which does not depend on the
order of the rows in a file.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec._core import check
from sadrec._core.types import Mask

_AT_ONCE = 2**20


def hold_out_one(indptr: NDArray[Any], seed: int) -> Mask:
    """One entry of every row that has at least two, drawn at random."""
    starts, sizes = indptr[:-1].astype(np.int64), np.diff(indptr)
    drawn = (generator(seed).random(len(sizes)) * sizes).astype(np.int64)
    mask = np.zeros(int(indptr[-1]), dtype=np.bool_)
    several = sizes >= 2
    mask[(starts + drawn)[several]] = True
    return mask


def hold_out_share(count: int, test: float, seed: int) -> Mask:
    """Exactly ``round(test * count)`` of ``count`` entries, every such set equally likely."""
    from sadrec.data._kernels import draw_exactly

    share = check.share(test, "test", inside=True)
    wanted = round(share * count)
    rng = generator(seed)
    mask = np.empty(count, dtype=np.bool_)
    for start in range(0, count, _AT_ONCE):
        part = mask[start : start + _AT_ONCE]
        wanted = draw_exactly(wanted, count - start, rng.random(len(part)), part)
    return mask


def deal(weight: NDArray[Any], shares: Any, seed: int) -> NDArray[np.float32]:
    """Deal what weights count among parts, with these shares on average: (parts, rows).

    A row of weight k is k rows, each of which goes to one part; what is left of a weight that is not whole goes to one.
    """
    if len(weight) and weight.max() > 2**53:
        raise ValueError(
            f"a weight of {weight.max():.3g} counts more than 2^53 comparisons: divide all weights by a number"
        )
    rng = generator(seed)
    whole = np.floor(weight).astype(np.int64)
    parts = rng.multinomial(whole, shares).T.astype(np.float32)
    drawn = np.searchsorted(np.cumsum(shares)[:-1], rng.random(len(whole)), side="right")
    parts[drawn, np.arange(len(whole))] += (weight - whole).astype(np.float32)
    return parts


def hold_out_from(timestamps: NDArray[Any], at: Any, test: float) -> Mask:
    """Everything from the time ``at`` on, or, where that is ``None``, the latest share ``test``."""
    if at is None:
        share = check.share(test, "test", inside=True)
        wanted = round(share * len(timestamps))
        if wanted == 0:
            return np.zeros(len(timestamps), dtype=np.bool_)
        at = np.partition(timestamps, len(timestamps) - wanted)[len(timestamps) - wanted]
    elif timestamps.dtype.kind == "M":
        try:
            at = np.datetime64(at)
        except (ValueError, TypeError):
            raise ValueError(
                f"the timestamps are dates, so at must be one too, such as '2020-01-31', not {at!r}"
            ) from None
    elif not isinstance(at, (int, float, np.integer, np.floating)):
        raise TypeError(f"the timestamps are numbers, so at must be one too, not {at!r}")
    mask: Mask = timestamps >= at
    if len(mask) and (mask.all() or not mask.any()):
        raise ValueError(
            f"a cut at {at} leaves nothing {'before' if mask.all() else 'after'} it: the times go from "
            f"{timestamps.min()} to {timestamps.max()}; give a time between them, or a share (test=0.2)"
        )
    return mask


def fold_masks(indptr: NDArray[Any], k: int, seed: int) -> Iterator[Mask]:
    """For each of ``k`` folds of the rows, whose sizes differ by at most one, the entries in those rows."""
    sizes = np.diff(indptr)
    k = check.whole(k, "k", 2, max(len(sizes), 2))
    fold = np.empty(len(sizes), dtype=np.int64)
    fold[np.argsort(generator(seed).random(len(sizes)), kind="stable")] = np.arange(len(sizes)) % k
    for number in range(k):
        yield np.repeat(fold == number, sizes)


def generator(seed: int) -> np.random.Generator:
    """Return a random generator with the same numbers on every machine."""
    return np.random.Generator(np.random.PCG64(check.whole(seed, "seed")))
