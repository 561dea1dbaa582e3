"""Files of arrays (models, posteriors, checkpoints, records), written again with something else in them.

All of it is well-formed, and its checksum is right: what is wrong has to be noticed by its meaning.
"""

import numpy as np

from sadrec._core.files import read_arrays, write_arrays


def contents(path):
    """Return copies of the arrays of a file, and its header."""
    arrays, header = read_arrays(path, "a file")
    return {name: np.array(array) for name, array in arrays.items()}, header


def rewrite(path, change, to=None):
    """Write a file again, or to another place, after ``change(arrays, header)``."""
    arrays, header = contents(path)
    change(arrays, header)
    write_arrays(path if to is None else to, arrays, header)


def with_array(path, name, change, to=None):
    """Write a file again, or to another place, with another array: ``change(array)``."""
    rewrite(path, lambda arrays, header: arrays.update({name: change(arrays[name])}), to)
