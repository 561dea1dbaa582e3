"""Snapshots of factors, out of memory."""

import gc
import tempfile

import numpy as np
import pytest

from sadrec.training.sgd.factors import initial_factors
from sadrec.training.sgd.trainer import Snapshot


def nowhere(**options):
    raise FileNotFoundError("no usable temporary directory")


class Full:
    """A file on a disk without room."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def seek(self, place):
        return place

    def close(self):
        raise OSError(28, "No space left on device")  # what was not written yet cannot be written now

    def write(self, data):
        raise OSError(28, "No space left on device")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("place", [tempfile.TemporaryFile, nowhere, lambda **options: Full()])
@pytest.mark.parametrize("bias", [False, True])
def test_a_snapshot_comes_back_wherever_it_was_kept(place, bias, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", place)
    factors = initial_factors(30, 20, 7, 0.1, True, bias, seed=0)
    kept = Snapshot(factors)
    wanted = factors.copy()
    for array in factors.arrays:
        array[:] = np.nan
    assert kept.put_into(factors) is factors
    assert all(np.array_equal(one, other) for one, other in zip(factors.arrays, wanted.arrays, strict=True))


@pytest.mark.filterwarnings("error")
def test_files_are_closed_without_a_warning():
    opened = []
    usual = tempfile.TemporaryFile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", lambda **options: opened.append(usual(**options)) or opened[-1])
        factors = initial_factors(3, 2, 1, 0.1, True, False, seed=0)
        kept = [Snapshot(factors), Snapshot(factors)]
        del kept[0]
        assert [file.closed for file in opened] == [True, False]
        del kept
    gc.collect()
    assert all(file.closed for file in opened)
