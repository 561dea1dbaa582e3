"""Compiled loops that put rows of a table into the order of a sparse matrix."""

import numpy as np
from numpy.typing import NDArray

from sadrec._core.kernel import kernel
from sadrec._core.types import Integers, Positions

LAST, SUM, COUNT, MAX = range(4)


@kernel
def number_ids(
    slots: Positions, numbers: Integers, stored: Positions, count: int, values: Positions, out: Integers, start: int
) -> tuple[int, int]:
    """Number ids from position ``start`` on, in the order in which they first occur.

    ``slots`` and ``numbers`` are a hash table (open addressing, its size a power of two, a free slot has the number
    -1); ``stored`` lists the ids by number. Stops where it is full; returns the number of ids and where it stopped.
    """
    mask = slots.shape[0] - 1
    for place in range(start, values.shape[0]):
        value = values[place]
        # Neighbouring ids must not crowd: multiply by 2^64 over the golden ratio, and fold the upper bits down.
        mixed = value * np.int64(-7046029254386353131)
        slot = (mixed ^ (mixed >> 32)) & mask
        while numbers[slot] >= 0 and slots[slot] != value:
            slot = (slot + 1) & mask
        if numbers[slot] < 0:
            if count == stored.shape[0]:
                return count, place
            slots[slot] = value
            numbers[slot] = count
            stored[count] = value
            count += 1
        out[place] = numbers[slot]
    return count, values.shape[0]


@kernel
def destinations(free: Positions, rows: Integers, out: Positions) -> None:
    """Give every entry the next free place of its row: one stable pass of a counting sort."""
    for entry in range(rows.shape[0]):
        row = rows[entry]
        out[entry] = free[row]
        free[row] += 1


@kernel
def sort_keys(keys: Positions, spare: Positions, size: int) -> None:
    """Sort the first ``size`` keys: short runs by insertion, then merged.

    Loops throughout: numba takes seconds to compile its own sort, or copies of slices.
    """
    run = 16
    for begin in range(0, size, run):
        for place in range(begin + 1, min(begin + run, size)):
            key = keys[place]
            hole = place
            while hole > begin and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                hole -= 1
            keys[hole] = key
    while run < size:
        for begin in range(0, size, 2 * run):
            middle = min(begin + run, size)
            end = min(begin + 2 * run, size)
            left = begin
            right = middle
            for place in range(begin, end):
                if left < middle and (right == end or keys[left] < keys[right]):
                    spare[place] = keys[left]
                    left += 1
                else:
                    spare[place] = keys[right]
                    right += 1
        for place in range(size):
            keys[place] = spare[place]
        run *= 2


@kernel
def tidy_rows(starts: Positions, columns: Integers, values: NDArray[np.float32], stamps: Positions, mode: int) -> int:
    """Sort each row by column and merge repeated columns, in place; return how many entries are left.

    ``stamps`` may be empty. ``starts`` is rewritten to the starts of the merged rows.
    """
    timed = stamps.shape[0] > 0
    longest = 0
    for row in range(starts.shape[0] - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    keys = np.empty(longest, dtype=np.int64)
    spare = np.empty(longest, dtype=np.int64)
    old_values = np.empty(longest, dtype=np.float32)
    old_stamps = np.empty(longest if timed else 0, dtype=np.int64)
    write = 0
    begin = starts[0]
    for row in range(starts.shape[0] - 1):
        end = starts[row + 1]
        size = end - begin
        in_order = True
        for place in range(size):
            # Column first, place second: distinct keys, so any sort is stable.
            keys[place] = (np.int64(columns[begin + place]) << 32) | place
            if place > 0 and columns[begin + place] <= columns[begin + place - 1]:
                in_order = False
        if in_order and write == begin and mode != COUNT:
            write = end
            begin = end
            starts[row + 1] = write
            continue
        if not in_order:
            sort_keys(keys, spare, size)
        for place in range(size):
            old_values[place] = values[begin + place]
            if timed:
                old_stamps[place] = stamps[begin + place]
        place = 0
        while place < size:
            column = keys[place] >> 32
            chosen = keys[place] & 0xFFFFFFFF
            value = old_values[chosen]
            total = np.float64(value)
            largest = value
            stamp = old_stamps[chosen] if timed else 0
            count = 1
            place += 1
            while place < size and keys[place] >> 32 == column:
                other = keys[place] & 0xFFFFFFFF
                total += old_values[other]
                largest = max(largest, old_values[other])
                if not timed or old_stamps[other] >= stamp:
                    value = old_values[other]
                    if timed:
                        stamp = old_stamps[other]
                count += 1
                place += 1
            if mode == SUM:
                value = np.float32(total)
            elif mode == COUNT:
                value = np.float32(count)
            elif mode == MAX:
                value = largest
            columns[write] = column
            values[write] = value
            if timed:
                stamps[write] = stamp
            write += 1
        begin = end
        starts[row + 1] = write
    return write


@kernel
def draw_exactly(wanted: int, left: int, uniforms: NDArray[np.float64], out: NDArray[np.bool_]) -> int:
    """Select ``wanted`` of the next ``left`` entries, every set equally likely; return how many are left to select."""
    for entry in range(out.shape[0]):
        take = uniforms[entry] * left < wanted
        out[entry] = take
        wanted -= take
        left -= 1
    return wanted


@kernel
def merge_rows(
    first_start: Positions,
    first: Integers,
    first_values: NDArray[np.float32],
    second_start: Positions,
    second: Integers,
    second_values: NDArray[np.float32],
    start: Positions,
    columns: Integers,
    values: NDArray[np.float32],
    of_first: NDArray[np.bool_],
    of_second: NDArray[np.bool_],
) -> None:
    """Write where each row of both matrices together starts and, where there is room, what is in it.

    Rows are sorted; of an entry of both, the value is that of the first.
    """
    size = 0
    for row in range(start.shape[0] - 1):
        one, two = first_start[row], second_start[row]
        while one < first_start[row + 1] or two < second_start[row + 1]:
            left = two == second_start[row + 1] or (one < first_start[row + 1] and first[one] <= second[two])
            right = one == first_start[row + 1] or (two < second_start[row + 1] and second[two] <= first[one])
            if columns.shape[0] > 0:
                columns[size] = first[one] if left else second[two]
                values[size] = first_values[one] if left else second_values[two]
                of_first[size], of_second[size] = left, right
            one += left
            two += right
            size += 1
        start[row + 1] = size
