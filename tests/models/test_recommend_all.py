"""Recommendations for everybody: the rows of ``recommend``, in a folder that can be continued."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import BPR, SAD, Interactions
from sadrec.data import UnknownIdError
from sadrec.models import CheckpointError, export


def made(users=57, items=23, kind=SAD, text=False):
    rng = np.random.default_rng(0)
    seen = rng.random((users, items)) < 0.3
    seen[3], seen[4] = True, False  # one who has seen everything, one who has seen nothing
    tau = None if kind is BPR else rng.random((items, 4))
    names = [f"u{n:03d}" for n in rng.permutation(users)] if text else None
    ids = [f"i{n}" for n in range(items)] if text else None
    factors = rng.normal(size=(users, 4)), rng.normal(size=(items, 4)), tau, rng.normal(size=items)
    return kind.from_factors(*factors[: 2 + 2 * (kind is SAD)], users=names, items=ids, seen=sp.csr_matrix(seen))


def expected(model, users=None, N=10, user_items=None, **options):
    rows = []
    users = model.users if users is None else users
    for place, user in enumerate(users):
        mine = None if user_items is None else user_items[[place]]
        ids, scores = model.recommend(user, mine, N=N, **options)
        lists = zip(ids.tolist(), scores.tolist(), strict=True)
        rows += [(user.item(), rank, item, score) for rank, (item, score) in enumerate(lists, 1)]
    return rows


@pytest.fixture(params=["SAD", "BPR", "text"])
def model(request):
    return made(kind=BPR if request.param == "BPR" else SAD, text=request.param == "text")


def written(model, folder, **options):
    return model.recommend_all(output=folder, **{"part_users": 10, "show_progress": False, **options}).collect().rows()


def test_the_rows_are_those_of_recommend(model, tmp_path):
    assert written(model, tmp_path / "lists", N=5) == expected(model, N=5)
    frame = pl.read_parquet(tmp_path / "lists" / "*.parquet")
    assert frame.columns == ["user", "rank", "item", "score"] and frame["score"].dtype == pl.Float32
    assert sorted(path.name for path in (tmp_path / "lists").iterdir()) == [
        "_manifest.json",
        *(f"part-{n:06d}.parquet" for n in range(6)),
    ]


def test_everything_asked_for_and_nothing_left(model, tmp_path):
    rows = written(model, tmp_path / "lists", N=10**9)
    assert rows == expected(model, N=10**9)
    assert model.users[3].item() not in {row[0] for row in rows}
    assert sum(row[0] == model.users[4].item() for row in rows) == 23
    assert written(model, tmp_path / "none", N=0) == []


@pytest.mark.parametrize("options", [{"method": "wins"}, {"filter_already_liked_items": False}, {"method": "liked"}])
def test_the_options_of_recommend(options, tmp_path):
    model = made()
    assert written(model, tmp_path / "lists", N=4, **options) == expected(model, N=4, **options)


def test_some_users_each_once(model, tmp_path):
    users = [model.users[30], model.users[7], model.users[30]]
    assert written(model, tmp_path / "some", users=users) == expected(model, model.users[[7, 30]])
    assert written(model, tmp_path / "nobody", users=[]) == []
    assert pl.read_parquet(tmp_path / "nobody" / "*.parquet").columns == ["user", "rank", "item", "score"]
    with pytest.raises(UnknownIdError, match="unknown user"):
        written(model, tmp_path / "unknown", users=["nobody"])
    assert not (tmp_path / "unknown").exists()


def test_users_of_a_parquet_file_and_of_a_folder(model, tmp_path):
    folder = tmp_path / "users"
    folder.mkdir()
    for name, rows in (("a", [5, 5, 8]), ("b", [1])):
        pl.DataFrame({"user_id": model.users[rows], "other": rows}).write_parquet(folder / f"{name}.parquet")
    (folder / "_manifest.json").write_text("{}")
    assert written(model, tmp_path / "one", users=folder / "a.parquet") == expected(model, model.users[[5, 8]])
    assert written(model, tmp_path / "all", users=str(folder)) == expected(model, model.users[[1, 5, 8]])


def test_exclusions_take_the_place_of_what_was_seen(model, tmp_path):
    given = sp.random(57, 23, 0.2, "csr", np.float32, np.random.default_rng(5))
    given.data[:] = 1
    interactions = Interactions.from_csr(given, model.users, model.items)
    interactions.to_frame().write_parquet(tmp_path / "known.parquet")
    wanted = expected(model, N=6, user_items=given)
    assert written(model, tmp_path / "interactions", N=6, user_items=interactions) == wanted
    assert written(model, tmp_path / "parquet", N=6, user_items=tmp_path / "known.parquet") == wanted
    assert wanted != expected(model, N=6)


def test_exclusions_of_others_do_not_matter(tmp_path):
    model = made(text=True)
    frame = pl.DataFrame({"user": ["u001", "u001", "stranger"], "item": ["i3", "unheard of", "i4"]})
    met = np.zeros((57, 23))
    met[model.users == "u001", 3] = 1
    rows = written(model, tmp_path / "lists", user_items=Interactions.from_frame(frame))
    assert rows == expected(model, user_items=sp.csr_matrix(met))
    with pytest.raises(ValueError, match="user_items names no user of the model with an item of the model"):
        written(model, tmp_path / "x", user_items=Interactions.from_frame(frame[2:]))


def test_bad_arguments_are_refused_before_anything_is_written(tmp_path):
    model, folder = made(), tmp_path / "lists"
    pl.DataFrame({"a": [1.5]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    (tmp_path / "empty").mkdir()
    for options, message in (
        ({"N": -1}, "N must be a whole number, at least 0, not -1"),
        ({"method": "luck"}, "method must be one of"),
        ({"part_users": 0}, "part_users must be a whole number, at least 1"),
        ({"filter_already_liked_items": "no"}, "filter_already_liked_items must be True or False"),
        ({"users": "nowhere.parquet"}, "there is no file or folder 'nowhere.parquet'"),
        ({"users": tmp_path / "empty"}, "there are no .parquet files in the folder"),
        ({"users": tmp_path / "a.parquet"}, "a.parquet: no column looks like the user; the columns are 'a'"),
        ({"users": tmp_path / "text.parquet"}, "text.parquet: it cannot be read as parquet"),
        ({"user_items": [1]}, "user_items must be Interactions or the path of Parquet"),
        ({"engine": "ray"}, r"engine must be None \(this process\) or sadrec.cluster.Ray"),
    ):
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
            written(model, folder, **options)
        assert not folder.exists()
    with pytest.raises(ValueError, match=r"text.parquet' is a file, and output must be a folder"):
        written(model, tmp_path / "text.parquet")
    with pytest.raises(
        ValueError, match=r"output must be a folder that this system has mounted, not 's3://lists': mount it"
    ):
        written(model, "s3://lists")


# -- continuing -------------------------------------------------------------------------------------------------------


class StopError(Exception):
    pass


def stopped(model, folder, monkeypatch, after, error=StopError, **options):
    """Begin, and stop after so many parts; return which are there."""
    keep, kept = export.Folder.keep, []

    def stop(self, part):
        if len(kept) == after:
            raise error
        kept.append(part.name)
        keep(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(export.Folder, "keep", stop)
        with pytest.raises(error):
            written(model, folder, **options)
    return kept


def counted(model, folder, monkeypatch, **options):
    """Continue; return the parts that were computed, and all rows."""
    write, computed = export.Lists.write, []

    def count(self, part, *rest):
        computed.append(part.name)
        return write(self, part, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(export.Lists, "write", count)
        return computed, written(model, folder, **options)


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt])
def test_the_same_call_continues(error, tmp_path, monkeypatch):
    model, folder = made(), tmp_path / "lists"
    assert len(stopped(model, folder, monkeypatch, 4, error)) == 4
    assert not (folder / "_manifest.json").exists()
    computed, rows = counted(model, folder, monkeypatch)
    assert computed == ["part-000004.parquet", "part-000005.parquet"] and rows == expected(model)
    assert counted(model, folder, monkeypatch) == ([], rows)


def test_the_model_of_a_file_continues_what_the_model_in_memory_began(tmp_path, monkeypatch):
    model = made()
    model.save(tmp_path / "m.sad")
    stopped(model, tmp_path / "lists", monkeypatch, 4)
    computed, rows = counted(SAD.load(tmp_path / "m.sad", mmap=True), tmp_path / "lists", monkeypatch)
    assert len(computed) == 2 and rows == expected(model)


@pytest.mark.parametrize("finished", [False, True])
def test_a_call_with_other_arguments_is_refused(finished, tmp_path, monkeypatch):
    model, folder = made(), tmp_path / "lists"
    if finished:
        written(model, folder)
    else:
        stopped(model, folder, monkeypatch, 3)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for options, difference in (
        ({"N": 9}, "N was 10 and is 9"),
        ({"users": [1, 2]}, "another users"),
        ({"method": "wins"}, "method was 'margin' and is 'wins'"),
        ({"part_users": 11}, "part_users was 10 and is 11"),
        ({"user_items": Interactions.from_csr(np.eye(57, 23))}, "another user_items"),
    ):
        with pytest.raises(CheckpointError, match=rf"{difference}.*give another folder"):
            written(model, folder, **options)
    with pytest.raises(CheckpointError, match="another model"):
        written(made(kind=BPR), folder)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_call_that_wrote_nothing_binds_nobody(tmp_path, monkeypatch):
    model, folder = made(), tmp_path / "lists"
    stopped(model, folder, monkeypatch, 0)
    assert written(model, folder, N=3) == expected(model, N=3)


def test_damaged_and_missing_parts_are_computed_again(tmp_path, monkeypatch, caplog):
    model, folder = made(), tmp_path / "lists"
    rows = written(model, folder)
    content = bytearray((folder / "part-000001.parquet").read_bytes())
    content[40] ^= 1
    (folder / "part-000001.parquet").write_bytes(content)
    (folder / "part-000003.parquet").unlink()
    computed, again = counted(model, folder, monkeypatch)
    assert computed == ["part-000001.parquet", "part-000003.parquet"] and again == rows
    assert caplog.text.count("is missing or damaged, and is computed again") == 2
    content = json.loads((folder / "_manifest.json").read_text())
    for change in ({"users": "x"}, {"name": "../elsewhere.parquet"}):
        wrong = {**content, "parts": [{**content["parts"][0], **change}, *content["parts"][1:]]}
        (folder / "_manifest.json").write_text(json.dumps(wrong))
        with pytest.raises(CheckpointError, match=r"_manifest.json' is damaged"):
            written(model, folder)
    (folder / "_manifest.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"_manifest.json' is damaged"):
        written(model, folder)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="holds other files: give a new folder, or an empty one"):
        written(made(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_in_use_is_refused(tmp_path, monkeypatch):
    model, folder = made(), tmp_path / "lists"
    keep = export.Folder.keep

    def meanwhile(self, part):
        with pytest.raises(CheckpointError, match="in use by another process"):
            written(model, folder)
        keep(self, part)

    monkeypatch.setattr(export.Folder, "keep", meanwhile)
    assert written(model, folder, part_users=50) == expected(model)


KILLED = """
import os, signal, sys
from sadrec import SAD
from sadrec.models import export
whole, count = export.write_whole, [0]
def write_whole(path, content):
    count[0] += str(path).endswith(".parquet")
    if count[0] == 3:
        (path.parent / f".{path.name}.elsewhere-1-ab.part").write_bytes(content[:100])  # left by a kill
        os.kill(os.getpid(), signal.SIGKILL)
    whole(path, content)
export.write_whole = write_whole
SAD.load(sys.argv[1]).recommend_all(output=sys.argv[2], part_users=10, show_progress=False)
"""


def test_after_a_kill_no_row_is_lost_or_doubled(tmp_path, monkeypatch):
    model, folder = made(), tmp_path / "lists"
    model.save(tmp_path / "m.sad")
    call = [sys.executable, "-c", KILLED, str(tmp_path / "m.sad"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run(call, env=environment, check=False).returncode == -signal.SIGKILL
    computed, rows = counted(SAD.load(tmp_path / "m.sad"), folder, monkeypatch)
    assert len(computed) == 4 and rows == expected(model)
    assert all(path.suffix in (".parquet", ".json") for path in folder.iterdir())


# -- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "N", "size"), [(0, 10, 2048), (6040, 10, 2048), (10**6, 10, 15625),
                                                  (10**8, 10, 65536), (10**8, 1000, 1048), (5, 10**7, 1)])  # fmt: skip
def test_parts_are_large_enough_to_work_on_and_small_enough_to_hold(users, N, size):
    assert export._part_users(users, N, None) == size


def test_the_manifest_counts_rows_and_users(tmp_path):
    model = made()
    rows = written(model, tmp_path / "lists")
    manifest = json.loads((tmp_path / "lists" / "_manifest.json").read_text())
    assert manifest["rows"] == len(rows) == sum(part["rows"] for part in manifest["parts"])
    assert manifest["users"] == 57 and len(manifest["parts"]) == 6
