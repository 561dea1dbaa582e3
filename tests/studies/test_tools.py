"""The loop of every study: what is kept, computed again, shared between processes and locked."""

from functools import partial

import pytest

from sadrec.models import CheckpointError
from studies._tools import Unit, locked, run


def square(number):
    return {"square": number * number}


def units(numbers, identity="one"):
    return [Unit(f"unit-{number}", {"identity": identity}, partial(square, number)) for number in numbers]


def test_results_come_in_the_order_of_the_units_with_any_number_of_processes(tmp_path):
    wanted = [{"square": number * number} for number in (5, 3, 4)]
    for workers in (1, 2):
        assert run(tmp_path / str(workers), units((5, 3, 4)), "squares", workers=workers, show_progress=False) == wanted


def test_a_unit_is_computed_again_when_its_identity_changes_or_its_file_is_damaged(tmp_path):
    computed = []

    def counted(identity):
        unit = Unit("unit", {"identity": identity}, lambda: computed.append(identity) or {"value": identity})
        return run(tmp_path, [unit], "count", show_progress=False)

    assert counted("one") == counted("one") == [{"value": "one"}]
    assert counted("two") == [{"value": "two"}]
    (file,) = tmp_path.glob("runs/unit.*")
    file.write_bytes(file.read_bytes()[:-20])
    assert counted("two") == [{"value": "two"}]
    assert computed == ["one", "two", "two"]


def test_a_unit_that_fails_leaves_the_finished_ones(tmp_path):
    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        run(tmp_path, [*units([2]), Unit("bad", {}, fail)], "squares", show_progress=False)
    assert [path.name for path in tmp_path.glob("runs/*.result")] == ["unit-2.result"]


def test_a_folder_in_use_and_a_file_in_its_place_are_refused(tmp_path):
    with locked(tmp_path / "runs"), pytest.raises(CheckpointError, match="in use"):
        run(tmp_path, units([1]), "squares", show_progress=False)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file"):
        run(tmp_path / "file", units([1]), "squares", show_progress=False)
