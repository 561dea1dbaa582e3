"""Checkpoints of a run: the last two are kept, and damaged ones and those of other runs are not used."""

import logging

import numpy as np
import pytest

from sadrec.models import CheckpointError, checkpoints_in
from sadrec.training.checkpoint import LocalCheckpoints
from tests.training.small import bits, loaded, pairs, run, trainer


def names_in(folder):
    return [path.name for path in sorted(folder.iterdir()) if path.name != ".lock"]


LAST_TWO = ["epoch-000007.checkpoint", "epoch-000008.checkpoint"]


def test_only_the_last_two_checkpoints_are_kept(tmp_path):
    run(trainer(), checkpoints=LocalCheckpoints(tmp_path, {}))
    assert names_in(tmp_path) == LAST_TWO


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path):
    half = tmp_path / ".epoch-000003.checkpoint.elsewhere-1-ab.part"
    half.write_bytes(b"half")
    run(trainer(), checkpoints=LocalCheckpoints(tmp_path, {}))
    assert names_in(tmp_path) == LAST_TWO


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, caplog):
    work = trainer()
    run(work, checkpoints=LocalCheckpoints(tmp_path, {}))
    newest = checkpoints_in(tmp_path)[0]
    newest.write_bytes(newest.read_bytes()[:200])
    assert loaded(tmp_path, work)[1] == 7
    assert "epoch-000008" in caplog.text and "cut short" in caplog.text
    for path in checkpoints_in(tmp_path):
        path.write_bytes(b"")
    assert loaded(tmp_path, work) is None


def broken(name, value):
    """Return a change of one array."""
    return lambda values, arrays: (values, {**arrays, name: value(arrays.get(name))})


def stated(**changed):
    """Return a change of plain values."""
    return lambda values, arrays: ({**values, **changed}, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken("users", lambda a: a[:-1]), "shape"),
        (broken("items", lambda a: a.astype(np.float64)), "float64"),
        (broken("items", lambda a: np.where(a == a.max(), np.nan, a).astype(np.float32)), "not finite"),
        (lambda values, arrays: (values, {name: arrays[name] for name in ("users", "items")}), "bias"),
        (broken("l1_weights", lambda a: np.full((30, 4), -1, np.float32)), "l1_weights are below 0"),
        (stated(history=[]), "0 epochs of figures"),
        (stated(best_epoch=3), "best epoch is 3"),
        (
            lambda values, arrays: (
                {**values, "best_epoch": 99},
                {**arrays, **{f"best_{name}": array for name, array in arrays.items()}},
            ),
            "best epoch is 99",
        ),
        (
            lambda values, arrays: (
                {**values, "best_epoch": 2},
                {**{f"best_{name}": array for name, array in arrays.items()}, **arrays, "items": arrays["items"][:3]},
            ),
            "shape",
        ),
    ],
)
def test_a_well_formed_checkpoint_with_wrong_content_is_passed_over(tmp_path, caplog, change, message):
    whole, work = trainer(), trainer()
    run(whole)
    checkpoints = LocalCheckpoints(tmp_path, {})
    run(work, checkpoints=checkpoints, after_epoch=lambda epoch, figures: epoch == 5)
    values, arrays = checkpoints.newest(lambda values, arrays: (values, dict(arrays)))
    checkpoints.write(5, *change({**values, "stopped": False}, arrays))
    again = trainer()
    with caplog.at_level(logging.INFO):
        run(again, checkpoints=LocalCheckpoints(tmp_path, {}))
    assert message in caplog.text and "resumed after epoch 4" in caplog.text
    assert bits(again) == bits(whole)


def test_a_run_whose_checkpoints_are_all_wrong_starts_where_it_would_without_them(tmp_path):
    whole = trainer()
    run(whole)
    checkpoints = LocalCheckpoints(tmp_path, {})
    run(trainer(), checkpoints=checkpoints, after_epoch=lambda epoch, figures: epoch == 1, validation=pairs(7, 60))
    values, arrays = checkpoints.newest(lambda values, arrays: (values, dict(arrays)))
    checkpoints.write(1, {**values, "stopped": False}, {**arrays, "items": arrays["items"][:3]})
    again = trainer()
    run(again, checkpoints=LocalCheckpoints(tmp_path, {}))
    assert bits(again) == bits(whole)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    run(trainer(), checkpoints=LocalCheckpoints(tmp_path, {"data": "a", "settings": 1}))
    with pytest.raises(CheckpointError, match=r"belongs to another run \(data was 'a' and is 'b'\).*another folder"):
        run(trainer(), checkpoints=LocalCheckpoints(tmp_path, {"data": "b", "settings": 1}))


def test_a_folder_in_use_is_refused(tmp_path):
    def meanwhile(epoch, figures):
        with pytest.raises(CheckpointError, match="in use by another process"):
            run(trainer(), checkpoints=LocalCheckpoints(tmp_path, {}))
        return True

    assert len(run(trainer(), after_epoch=meanwhile, checkpoints=LocalCheckpoints(tmp_path, {}))) == 1


def test_the_newest_checkpoint_comes_first_whatever_its_number_of_digits(tmp_path):
    for epoch in ("999999", "1000000", "000002"):
        (tmp_path / f"epoch-{epoch}.checkpoint").touch()
    assert [path.stem for path in checkpoints_in(tmp_path)] == ["epoch-1000000", "epoch-999999", "epoch-000002"]
