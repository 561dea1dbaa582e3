"""What is imported when: a start should not pay for what it does not use."""

import subprocess
import sys

import pytest

import sadrec

SLOW = {"polars", "scipy", "numba", "pandas", "pyarrow"}


def loaded_by(program):
    """Return which of the slow libraries a program loads."""
    code = f"{program}\nimport sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return SLOW & set(out.split())


@pytest.mark.parametrize("program", ["import sadrec", "from sadrec.training.settings import TrainingSettings"])
def test_nothing_slow_is_imported_before_it_is_needed(program):
    assert not loaded_by(program)


def test_the_public_names_are_there_all_the_same():
    assert {"SAD", "BPR", "Interactions", "Comparisons"} <= set(dir(sadrec))
    assert loaded_by("from sadrec import SAD, BPR, Interactions, Comparisons, data, models; SAD.fit; data.load")
    with pytest.raises(AttributeError, match="no attribute 'SAT'"):
        sadrec.SAT  # noqa: B018
