r"""Softmax over negatives: an interaction of a user against many sampled items at once.

For a positive ``(u, i)`` and its negatives ``j`` the step goes up the gradient of
:math:`\log p = -\log (1 + \sum_j \exp(-x_{uij}))`: every negative moves by its share
:math:`p_j = p \exp(-x_{uij})`. With one negative that is the pairwise step (:mod:`sadrec.training.sgd.pairwise`).

The schedule is that of :mod:`sadrec.training.sgd.negatives`. In a cell, about 128 positives at a time share negatives
that are sampled from the block without repetition; fewer positives where there are fewer negatives. Negatives that a
user knows do not count for this user. So the margins are a product of two matrices: with
:math:`q = (-\xi \tau_i \,|\, \xi \eta_i)` for each positive and the row :math:`r = (\eta_j \,|\, \tau_j)` of each
negative, :math:`x_{uij} = q \cdot r + b_i - b_j`. What the positives and the negatives move by are two more products,
of the shares with :math:`r` and with :math:`q`.

Where T is at 1, :math:`q = -\xi` and :math:`r = \eta_j`, and :math:`\xi \cdot \eta_i` is added: all positives of a user
have one row of the products, as their shares of the negatives differ by a factor alone.

Penalties are those of the pairwise step. For every positive the user and the item pay them once, and the negatives
together once, each its share. With a length, the vectors xi of users and eta of items are put back to it after every
step, so that their cosine decides; l2 then holds back the bias alone.
"""

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import TILE_COLUMNS, TILE_ROWS, inlined, kernel, power_of_two, product_tile, transpose_tile
from sadrec._core.random import advance, below, hashed, stream_key
from sadrec._core.types import Floats
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.negatives import AHEAD, CHUNK, Deal, Triples, claimed_cells, draw, fetch, room_for_triples
from sadrec.training.sgd.pairwise import (
    Penalties,
    add_log,
    bias_of,
    held_by,
    move_bias,
    pull,
    pull_bias,
    towards_one,
    weight_of,
)

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)
_LIMIT = np.float32(80.0)
_MOST = np.float32(3e38)
_LEAST = np.float32(1e-35)  # likelihood, so that its logarithm is finite; sum of shares, so that its inverse is


class SoftmaxWork(NamedTuple):
    """The arrays that the cells of an epoch work on."""

    dealt: Deal  # with no candidates: negatives are not drawn for each positive
    negatives: int  # shared by the positives of a chunk; at most a whole block
    length: float  # of the vectors of users and items; 0 leaves it free


class Room(NamedTuple):
    """Arrays for the products of a chunk, rounded up to whole tiles: entries beyond the chunk are ignored."""

    chosen: NDArray[np.int32]  # (negatives,): the items
    row: NDArray[np.int32]  # (positives,): which row of the products is that of a positive
    queries: Floats  # (rows, width), q
    negatives: Floats  # (negatives, width), r
    transposed: Floats  # (width, rows): q once more
    margins: Floats  # (negatives, rows)
    shares: Floats  # (rows, negatives): margins, then learning rate times weight times share, of all its positives
    pulled: Floats  # (rows, width): shares times r
    pushed: Floats  # (negatives, width): shares times q
    common: Floats  # (positives,): what the margins of each have in common
    positive_share: Floats  # (positives,): the sum of the shares of each
    part: Floats  # (positives,): the part of its row's shares that a positive has
    moved: Floats  # (negatives,): the sum of the shares of each
    held: Floats  # (negatives,): what part of l2 and l1 each pays, in all


@kernel
def room_for_chunk(positives: int, negatives: int, width: int) -> Room:
    """Return arrays for chunks of at most this number of positives."""
    rows, columns, long = rounded(positives), rounded(negatives), rounded(width)
    return Room(
        np.zeros(negatives, np.int32),
        np.zeros(positives, np.int32),
        np.zeros((rows, long), np.float32),
        np.zeros((columns, long), np.float32),
        np.zeros((long, rows), np.float32),
        np.zeros((columns, rows), np.float32),
        np.zeros((rows, columns), np.float32),
        np.zeros((rows, long), np.float32),
        np.zeros((columns, long), np.float32),
        np.zeros(positives, np.float32),
        np.zeros(positives, np.float32),
        np.zeros(positives, np.float32),
        np.zeros(negatives, np.float32),
        np.zeros(negatives, np.float32),
    )


@kernel
def rounded(size: int) -> int:
    """Return the next size that is made of whole tiles, by row and by column."""
    return -(-size // TILE_COLUMNS) * TILE_COLUMNS


@kernel
def multiply(left: Any, right: Any, rows: int, inner: int, columns: int, product: Any) -> None:
    """Write the product of the first ``rows`` of ``left`` and the first ``columns`` of ``right``.

    All arrays are made of whole tiles, and numbers up to the next whole tile are written as well. The order of
    additions is fixed, other than that of a library, which may depend on its threads.
    """
    for row in range(0, rows, TILE_ROWS):
        for column in range(0, columns, TILE_COLUMNS):
            product_tile(left, right, product, row, column, inner)


@kernel
def transpose(matrix: Any, rows: int, columns: int, written: Any) -> None:
    """Write the first rows and columns of a matrix, transposed, in whole tiles."""
    for row in range(0, rows, TILE_ROWS):
        for column in range(0, columns, TILE_ROWS):
            transpose_tile(matrix, written, row, column)


@kernel
def sample(order: Any, count: int, state: Any) -> Any:
    """Shuffle a random part of ``order`` to its front, and return the next state of the random numbers."""
    size = order.shape[0]
    for c in range(count):
        state = advance(state)
        other = c + below(hashed(state), size - c)
        order[c], order[other] = order[other], order[c]
    return state


@kernel
def write_queries(triples: Triples, first: int, last: int, factors: Factors, l1: Any, room: Room) -> int:
    """Write q and what the margins of each positive have in common; return the number of rows."""
    users, items, bias = factors
    k, rows = users.shape[1], 0
    for t in range(first, last):
        u, i = triples.user[t], triples.item[t]
        if t + AHEAD < last:
            fetch(users[triples.user[t + AHEAD]])
            fetch(items[triples.item[t + AHEAD]])
        xi, eta, own = users[u], items[i][:k], _ZERO
        if l1 is None:
            for h in range(k):
                own += xi[h] * eta[h]
        if l1 is not None or t == first or u != triples.user[t - 1]:
            query = room.queries[rows]
            rows += 1
            if l1 is None:
                for h in range(k):
                    query[h] = -xi[h]
            else:
                tau, of_eta, of_tau = items[i][k:], query[:k], query[k:]
                for h in range(k):
                    of_eta[h] = -xi[h] * tau[h]
                    of_tau[h] = xi[h] * eta[h]
        room.row[t - first] = rows - 1
        room.common[t - first] = own + bias_of(bias, i)
    return rows


@inlined
def exp_of(x: Any) -> Any:
    """Return exp(x) for x <= 0, to seven digits, and 0 below -80; unlike ``exp``, loops compute many at a time."""
    least = -_LIMIT if x < -_LIMIT else x  # not a number stays what it is
    doublings = np.floor(np.float32(1.44269504) * least + np.float32(0.5))
    rest = least - np.float32(0.69314718) * doublings  # between -log(2) / 2 and log(2) / 2
    series = np.float32(1.9875691e-4)
    series = series * rest + np.float32(1.3981999e-3)
    series = series * rest + np.float32(8.3334519e-3)
    series = series * rest + np.float32(4.1665796e-2)
    series = series * rest + np.float32(1.6666666e-1)
    series = series * rest + np.float32(0.5)
    power = power_of_two(np.int32(doublings)) * (series * rest * rest + rest + _ONE)
    return _ZERO if x < -_LIMIT else power


@kernel
def write_odds(margins: Any) -> Any:
    """Turn margins into the odds of the negatives against the one of the least margin; return that, and their sum.

    A margin of infinity is that of an item the user knows: its odds are 0.
    """
    least, total = _MOST, _ZERO
    for c in range(margins.shape[0]):
        least = min(least, margins[c])
    for c in range(margins.shape[0]):
        odds = exp_of(least - margins[c])
        margins[c] = odds
        total += odds
    return least, total


@kernel
def scale_of_shares(own: Any, least: Any, total: Any, scale: Any) -> Any:
    """Return the factor that turns odds into ``scale`` times the shares of a positive, and its likelihood."""
    smallest = own + least
    won, lost = exp_of(min(smallest, _ZERO)), exp_of(min(-smallest, _ZERO))
    return scale * lost / (won + lost * total), max(won / (won + lost * total), _LEAST)


@kernel
def update_positive(
    xi: Any, item: Any, pulled: Any, part: Any, share: Any, decay: Any, rate: float, l1: Any, l1_weights: Any, i: int
) -> None:
    """Update the rows of the user and of the positive item."""
    k = xi.shape[0]
    if l1 is None:
        for h in range(k):
            x, a = xi[h], item[h]
            xi[h] = decay * x + (share * a - part * pulled[h])
            item[h] = decay * a + share * x
    else:
        eta, tau = item[:k], item[k:]
        pulled_eta, pulled_tau = pulled[:k], pulled[k:]
        s = np.float32(rate * l1)
        for h in range(k):
            x, a, b = xi[h], eta[h], tau[h]
            xi[h] = decay * x + (a * pulled_tau[h] - b * pulled_eta[h])
            eta[h] = decay * a + x * pulled_tau[h]
            tau[h] = towards_one(b - x * pulled_eta[h], held_by(s, l1_weights, i, h))


@kernel
def update_negative(item: Any, pushed: Any, decay: Any, k: int, rate: Any, l1: Any, l1_weights: Any, j: int) -> None:
    """Update the row of a negative, for all positives of the chunk."""
    eta, pushed_eta = item[:k], pushed[:k]
    for h in range(k):
        eta[h] = decay * eta[h] + pushed_eta[h]
    if l1 is not None:
        tau, pushed_tau = item[k:], pushed[k:]
        s = np.float32(rate * l1)
        for h in range(k):
            tau[h] = towards_one(tau[h] + pushed_tau[h], held_by(s, l1_weights, j, h))


@kernel
def put_to_length(vector: Any, length: float) -> None:
    """Scale a vector to a length, unless that is 0; a vector of zeros is unchanged."""
    if length > 0:
        square = _ZERO
        for h in range(vector.shape[0]):
            square += vector[h] * vector[h]
        if square > 0:
            # Of an endless vector the length would hide that training diverged.
            factor = np.float32(length) / np.float32(sqrt(square)) if square < np.inf else np.float32(np.nan)
            for h in range(vector.shape[0]):
                vector[h] *= factor


@kernel
def put_rows_to_length(factors: Factors, length: float) -> None:
    """Scale all vectors of users and items to the length."""
    rows, items, _ = factors
    k = rows.shape[1]
    for u in range(rows.shape[0]):
        put_to_length(rows[u], length)
    for i in range(items.shape[0]):
        put_to_length(items[i][:k], length)


@kernel
def gather(items: Any, chosen: Any, width: int, room: Room) -> None:
    """Copy the rows of the negatives."""
    count = chosen.shape[0]
    for c in range(count):
        if c + AHEAD < count:
            fetch(items[chosen[c + AHEAD]])
        room.negatives[c, :width] = items[chosen[c], :width]


@kernel
def write_all_shares(
    triples: Triples,
    first: int,
    last: int,
    block: int,
    slot: Any,
    work: SoftmaxWork,
    bias: Any,
    rate: float,
    room: Room,
) -> float:
    """Turn the margins of some triples into shares, add these up by negative, and return the log likelihood."""
    dealt, chosen = work.dealt, room.chosen
    room.moved[:] = 0
    room.held[:] = 0
    likelihood, product, t = 0.0, 1.0, first
    while t < last:
        u, row = triples.user[t], room.row[t - first]
        shares, row_first = room.shares[row, : chosen.shape[0]], t
        for c in range(chosen.shape[0]):
            shares[c] -= bias_of(bias, chosen[c])
        for place in range(dealt.run_start[u, block], dealt.run_start[u, block + 1]):
            place_in_row = dealt.row_start[u] + place
            at = slot[dealt.place[place_in_row]]
            if at >= 0 and weight_of(dealt.weight, place_in_row) >= 0:  # a disliked item is a negative as any other
                shares[at] = np.inf
        least, odds = write_odds(shares)
        all_parts, held = _ZERO, 0
        while t < last and room.row[t - first] == row:
            weight = weight_of(dealt.weight, triples.at[t]) * weight_of(dealt.user_weight, u)
            part, own = scale_of_shares(room.common[t - first], least, odds, np.float32(rate) * weight)
            likelihood, product = add_log(likelihood, product, own)
            room.part[t - first], room.positive_share[t - first] = part, part * odds
            held += part * odds > _LEAST
            all_parts += part
            t += 1
        inverse = _ZERO if all_parts <= _LEAST else _ONE / all_parts
        for of_row in range(row_first, t):
            room.part[of_row - first] *= inverse
        penalty = np.float32(held) / odds if held else _ZERO
        for c in range(chosen.shape[0]):
            room.held[c] += shares[c] * penalty
            shares[c] *= all_parts
            room.moved[c] += shares[c]
    return likelihood + log(product)


@kernel
def update_chunk(
    triples: Triples,
    first: int,
    last: int,
    factors: Factors,
    penalties: Penalties,
    rate: float,
    length: float,
    room: Room,
) -> None:
    """Update all rows: those of the positives one after another, those of the negatives once for all."""
    (rows, items, bias), l1, l1_weights = factors, penalties.l1, penalties.l1_weights
    k = rows.shape[1]
    decay = np.float32(1.0 - 2.0 * rate * penalties.l2)
    for t in range(first, last):
        xi, i, share = rows[triples.user[t]], triples.item[t], room.positive_share[t - first]
        pulled, part = room.pulled[room.row[t - first]], room.part[t - first]
        update_positive(xi, items[i], pulled, part, share, decay, rate, l1, l1_weights, i)
        pull(xi, penalties.user_centre, triples.user[t], decay)
        pull(items[i], penalties.item_centre, i, decay)
        put_to_length(xi, length)
        put_to_length(items[i][:k], length)
        move_bias(bias, i, decay, share)
        pull_bias(bias, penalties.bias_centre, i, decay)
    for c in range(room.chosen.shape[0]):
        j, held = room.chosen[c], room.held[c]
        own_decay = np.float32(decay**held)
        update_negative(items[j], room.pushed[c], own_decay, k, rate * held, l1, l1_weights, j)
        pull(items[j], penalties.item_centre, j, own_decay)
        put_to_length(items[j][:k], length)
        move_bias(bias, j, own_decay, -room.moved[c])
        pull_bias(bias, penalties.bias_centre, j, own_decay)


@kernel
def train_softmax(
    cells: Any, claimed: Any, work: SoftmaxWork, factors: Factors, penalties: Penalties, rate: float, figures: Any
) -> None:
    """Train cells against shared negatives; write (updates, skipped, log likelihood) of each."""
    rows, items, bias = factors
    dealt = work.dealt
    width = rows.shape[1] if penalties.l1 is None else items.shape[1]  # where T is at 1, eta alone
    triples = room_for_triples(dealt)
    largest = dealt.block_start[1]  # no block is larger than the first
    order, slot = np.empty(largest, np.int32), np.full(largest, -1, np.int32)
    for number, shard, block in claimed_cells(cells, claimed):
        state = stream_key(dealt.seed, dealt.epoch, number, 0)
        updates, skipped, total = 0, 0, 0.0
        start = dealt.block_start[block]
        places = order[: dealt.block_start[block + 1] - start]
        for place in range(places.shape[0]):
            places[place] = place
        count = min(work.negatives, places.shape[0])
        chunk = min(CHUNK, count)  # else few negatives would take the steps of many positives at once
        room = room_for_chunk(chunk + chunk // 2, count, width)
        s, stop = dealt.shard_start[shard], dealt.shard_start[shard + 1]
        while s < stop:
            s, drawn, state, without = draw(s, stop, block, dealt, state, triples)
            updates += drawn
            skipped += without
            parts = max((drawn + chunk // 2) // chunk, 1)
            for part in range(parts):
                first, last = drawn * part // parts, drawn * (part + 1) // parts
                state = sample(places, count, state)
                for c in range(count):
                    slot[places[c]] = c
                    room.chosen[c] = dealt.block_items[start + places[c]]
                gather(items, room.chosen, width, room)
                queries = write_queries(triples, first, last, factors, penalties.l1, room)
                transpose(room.queries, queries, width, room.transposed)
                multiply(room.negatives, room.transposed, count, width, queries, room.margins)
                transpose(room.margins, count, queries, room.shares)
                total += write_all_shares(triples, first, last, block, slot, work, bias, rate, room)
                multiply(room.shares, room.negatives, queries, count, width, room.pulled)
                multiply(room.shares.T, room.queries, count, queries, width, room.pushed)
                update_chunk(triples, first, last, factors, penalties, rate, work.length, room)
                for c in range(count):
                    slot[places[c]] = -1
        figures[number, 0] = updates
        figures[number, 1] = skipped
        figures[number, 2] = total
