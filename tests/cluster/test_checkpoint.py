"""Checkpoints in shards, on a disk and on another file system of fsspec."""

import numpy as np
import pytest

from sadrec._record import CheckpointError
from sadrec.cluster.checkpoint import Saved, Shards, file_system, read_rows, write_rows
from sadrec.cluster.worker import Rows

USERS, ITEMS, K = 11, 7, 3


@pytest.fixture(params=["disk", "memory"])
def folder(request, tmp_path):
    pytest.importorskip("fsspec")
    return str(tmp_path / "run") if request.param == "disk" else f"memory://{tmp_path.name}/run"


def whole():
    rng = np.random.default_rng(0)
    users, items = rng.random((USERS, K), np.float32), rng.random((ITEMS, 2 * K), np.float32)
    return Rows(users, items, rng.random(ITEMS, np.float32), None)


def part(rows, first_user, last_user, first_item, last_item):
    items = slice(first_item, last_item)
    return Rows(rows.users[first_user:last_user], rows.items[items], rows.bias[items], None)


def save(shards, epoch, attempt=1):
    rows, bounds = whole(), [[0, 5, 0, 4], [5, 11, 4, 7]]
    names = [f"epoch-{epoch:06d}-{attempt:03d}-{worker:05d}.rows" for worker in range(2)]
    sums = [write_rows(shards.folder, name, part(rows, *edge)) for name, edge in zip(names, bounds, strict=True)]
    saved = Saved(shards.folder, epoch, ({"log_likelihood": -0.5},) * epoch, False, names, bounds, sums)
    shards.write(saved)
    return saved


def names_in(folder):
    system, path = file_system(folder)
    return sorted(str(entry).rsplit("/", 1)[-1] for entry in system.ls(path, detail=False))


def test_another_number_of_workers_reads_what_was_written(folder):
    shards = Shards(folder, {"settings": {"seed": 1}})
    assert shards.newest() is None
    saved = save(shards, 3)
    assert shards.newest() == saved
    for bounds in ([0, 4, 0, 2], [4, 8, 2, 5], [8, 11, 5, 7]):
        for ours, theirs in zip(read_rows(saved, *bounds), part(whole(), *bounds), strict=True):
            assert (ours is None and theirs is None) or np.array_equal(ours, theirs)


def test_shards_without_a_manifest_do_not_count_and_the_last_two_are_kept(folder):
    shards = Shards(folder, {})
    for epoch in (1, 2, 3):
        save(shards, epoch)
    write_rows(folder, "epoch-000004-001-00000.rows", whole())  # the program was killed before the manifest
    assert shards.newest().epoch == 3
    assert not any("epoch-000001" in name for name in names_in(folder))
    assert any("epoch-000002" in name for name in names_in(folder))


def test_a_checkpoint_of_another_fit_is_refused(folder):
    save(Shards(folder, {"settings": {"seed": 1}}), 1)
    with pytest.raises(CheckpointError, match=r"belongs to another run.*seed was 1 and is 2"):
        Shards(folder, {"settings": {"seed": 2}}).newest()


def test_the_file_of_a_late_worker_is_not_taken_for_that_of_the_manifest(folder):
    saved = save(Shards(folder, {}), 2)
    other = part(whole(), 0, 5, 0, 4)
    write_rows(folder, saved.names[0], other._replace(users=other.users + 1))
    with pytest.raises(CheckpointError, match="is not the file that its manifest names"):
        read_rows(saved, 0, 11, 0, 7)
