"""Checkpoints that workers write, on a disk and on another file system of fsspec."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from sadrec._core.files import fingerprint
from sadrec.cluster.checkpoint import ClusterCheckpoints, ParameterRows, Saved, file_system, read_rows, write_rows
from sadrec.models import CheckpointError

USERS, ITEMS, K = 11, 7, 3
SETTINGS = SimpleNamespace(factors=K, learn_rivals=True, bias=True, adaptive=False)


@pytest.fixture(params=["disk", "memory"])
def folder(request, tmp_path):
    pytest.importorskip("fsspec")
    return str(tmp_path / "run") if request.param == "disk" else f"memory://{tmp_path.name}/run"


def whole():
    rng = np.random.default_rng(0)
    users, items = rng.random((USERS, K), np.float32), rng.random((ITEMS, 2 * K), np.float32)
    return ParameterRows(users, items, rng.random(ITEMS, np.float32), None)


def part(rows, first_user, last_user, first_item, last_item):
    items = slice(first_item, last_item)
    return ParameterRows(rows.users[first_user:last_user], rows.items[items], rows.bias[items], None)


def save(checkpoints, epoch, attempt=1):
    rows, bounds = whole(), [[0, 5, 0, 4], [5, 11, 4, 7]]
    names = [f"epoch-{epoch:06d}-{attempt:03d}-{worker:05d}.rows" for worker in range(2)]
    sums = [write_rows(checkpoints.place, name, part(rows, *edge)) for name, edge in zip(names, bounds, strict=True)]
    values = {"epoch": epoch, "history": [{"log_likelihood": -0.5}] * epoch, "stopped": False}
    checkpoints.write(epoch, {**values, "names": names, "bounds": bounds, "checksums": sums}, {})
    return Saved(checkpoints.place, epoch, names, bounds, sums)


def newest(checkpoints):
    """Return the newest checkpoint."""
    return checkpoints.newest(
        lambda values, arrays: Saved(
            checkpoints.place, *(values[name] for name in ("epoch", "names", "bounds", "checksums"))
        )
    )


def names_in(folder):
    system, path = file_system(folder)
    return sorted(str(entry).rsplit("/", 1)[-1] for entry in system.ls(path, detail=False))


def test_another_number_of_workers_reads_what_was_written(folder):
    checkpoints = ClusterCheckpoints(folder, {"settings": {"seed": 1}})
    assert newest(checkpoints) is None
    saved = save(checkpoints, 3)
    assert newest(checkpoints) == saved
    for bounds in ([0, 4, 0, 2], [4, 8, 2, 5], [8, 11, 5, 7]):
        for ours, theirs in zip(read_rows(saved, bounds, SETTINGS), part(whole(), *bounds), strict=True):
            assert (ours is None and theirs is None) or np.array_equal(ours, theirs)


def test_checkpoints_are_in_the_order_of_epochs_beyond_six_digits(folder):
    checkpoints = ClusterCheckpoints(folder, {})
    save(checkpoints, 2)
    system, path = file_system(folder)
    for epoch in ("999999", "1000000"):
        system.pipe_file(f"{path}/epoch-{epoch}.manifest", b"")
    assert checkpoints._manifests() == [f"epoch-{epoch}.manifest" for epoch in ("000002", "999999", "1000000")]


def test_shards_without_a_manifest_do_not_count_and_the_last_two_are_kept(folder):
    checkpoints = ClusterCheckpoints(folder, {})
    for epoch in (1, 2, 3):
        save(checkpoints, epoch)
    write_rows(folder, "epoch-000004-001-00000.rows", whole())  # the program was killed before the manifest
    assert newest(checkpoints).epoch == 3
    assert not any("epoch-000001" in name for name in names_in(folder))
    assert any("epoch-000002" in name for name in names_in(folder))


def test_a_checkpoint_of_another_fit_is_refused(folder):
    save(ClusterCheckpoints(folder, {"settings": {"seed": 1}}), 1)
    with pytest.raises(CheckpointError, match=r"belongs to another run.*seed was 1 and is 2"):
        newest(ClusterCheckpoints(folder, {"settings": {"seed": 2}}))


def test_the_file_of_a_late_worker_is_not_taken_for_that_of_the_manifest(folder):
    saved = save(ClusterCheckpoints(folder, {}), 2)
    other = part(whole(), 0, 5, 0, 4)
    write_rows(folder, saved.names[0], other._replace(users=other.users + 1))
    with pytest.raises(CheckpointError, match="is not the file that its manifest names"):
        read_rows(saved, [0, 11, 0, 7], SETTINGS)


@pytest.mark.parametrize(
    "change",
    [
        {"users": np.ones((4, K), np.float32)},
        {"users": np.ones((5, K), np.float64)},
        {"items": np.full((4, 2 * K), np.nan, np.float32)},
        {"items": -np.ones((4, 2 * K), np.float32)},
        {"bias": None},
        {"l1_weights": np.ones((1, K), np.float32)},
    ],
)
def test_rows_that_do_not_fit_reach_no_kernel(folder, change):
    saved = save(ClusterCheckpoints(folder, {}), 2)
    saved.checksums[0] = write_rows(folder, saved.names[0], part(whole(), 0, 5, 0, 4)._replace(**change))
    with pytest.raises(CheckpointError, match="does not fit this fit"):
        read_rows(saved, [0, 11, 0, 7], SETTINGS)


@pytest.mark.parametrize(
    "change",
    [
        {"names": ["../../elsewhere", "epoch-2"]},
        {"names": ["epoch-../../elsewhere", "epoch-2"]},
        {"bounds": [[0, 5, 0, 4], [6, 11, 4, 7]]},
        {"bounds": [[0, 5, 0], [5, 11, 4, 7]]},
        {"epoch": 7},
        {"epoch": "2"},
        {"history": 5},
        {"more": 1},
    ],
)
def test_a_manifest_that_cannot_be_is_left_out_whatever_its_digest(tmp_path, change, caplog):
    pytest.importorskip("fsspec")
    checkpoints = ClusterCheckpoints(str(tmp_path), {})
    save(checkpoints, 1)
    save(checkpoints, 2)
    path = tmp_path / "epoch-000002.manifest"
    content = {**json.loads(path.read_text()), **change}
    del content["digest"]
    path.write_text(json.dumps({**content, "digest": fingerprint(content)}))
    assert newest(checkpoints).epoch == 1
    assert "epoch-000002.manifest is damaged; it is left out" in caplog.text


def test_no_planted_link_is_followed_and_what_a_kill_left_is_cleared(tmp_path):
    pytest.importorskip("fsspec")
    (tmp_path / "precious").write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".epoch-000001.manifest", "epoch-000001.manifest", "epoch-000001-001-00000.rows"):
        (folder / name).symlink_to(tmp_path / "precious")
    (folder / ".epoch-000000-001-00000.rows.there-1-ab.part").write_text("cut")
    save(ClusterCheckpoints(str(folder), {}), 1)
    assert (tmp_path / "precious").read_text() == "mine"
    assert [name for name in names_in(str(folder)) if name.startswith(".")] == []


def test_a_folder_that_becomes_a_file_is_said_in_words(tmp_path):
    """It was a bare NotADirectoryError, of the lock that could not be given back."""
    pytest.importorskip("fsspec")
    checkpoints = ClusterCheckpoints(str(tmp_path / "kept"), {})
    with (
        pytest.raises(ValueError, match=r"kept' is a file, and a folder is needed: choose another name"),
        checkpoints.held(),
    ):
        shutil.rmtree(tmp_path / "kept")
        (tmp_path / "kept").write_text("not a folder")
        newest(checkpoints)
    for below in ("kept", "kept/below"):
        with pytest.raises(ValueError, match=r"kept' is a file, and a folder is needed"):
            write_rows(str(tmp_path / below), "epoch-000001-001-00000.rows", whole())
