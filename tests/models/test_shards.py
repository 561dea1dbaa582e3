"""A model in a folder: the items in one file, the users in several."""

import json
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from sadrec import SAD
from sadrec._files import checksum_of, fingerprint, read_arrays, write_arrays
from sadrec.models import ModelFileError
from sadrec.models.fitting import collect
from sadrec.models.shards import MANIFEST, fitted_away, write_users
from sadrec.models.stacked import StackedMatrix, StackedRows

USERS, ITEMS, CUTS = 30, 12, [0, 7, 7, 21, 30]


class Elsewhere:
    """Users of a fitted model that are handed out in shards."""

    def __init__(self, model, fails=False):
        self.model, self.shape, self.ended, self.fails = model, (USERS, ITEMS), False, fails

    def items(self):
        rows = np.hstack([self.model.item_factors, self.model.rival_factors])
        return self.model.items, rows, np.array(self.model.item_bias)

    def users(self):
        return np.array(self.model.user_factors), self.model.users, self.model.state.seen

    def write_users(self, folder, token):
        if self.fails:
            raise RuntimeError("a worker is gone")
        files = []
        for number, (first, last) in enumerate(pairwise(CUTS)):
            seen = self.model.state.seen[first:last]
            parts = seen.indptr.astype(np.int64), seen.indices, seen.data
            own = slice(first, last)
            name = f"users-{number}-{token}.sad"
            files.append(write_users(folder, name, first, self.model.user_factors[own], self.model.users[own], parts))
        return files

    def end(self):
        self.ended = True


@pytest.fixture(scope="module")
def whole():
    rng = np.random.default_rng(0)
    clicks = sp.csr_matrix(np.where(rng.random((USERS, ITEMS)) < 0.3, 1.0, 0.0))
    model = SAD(factors=4, iterations=3, blocks=2, bias=True, num_threads=1).fit(clicks, False)
    names = [f"u{n:02d}" for n in range(USERS)]
    return SAD.from_factors(
        model.user_factors, model.item_factors, model.rival_factors, model.item_bias, users=names, seen=model.state.seen
    )


def away(whole, **options):
    model = SAD(factors=4)
    fit = SAD(factors=4, iterations=1, blocks=1, bias=True).fit(np.eye(ITEMS), False)
    model.state = fitted_away(Elsewhere(whole, **options), fit.settings, [])
    return model


def same(one, other):
    names = ("user_factors", "item_factors", "rival_factors", "item_bias", "users", "items")
    return all(np.array_equal(np.asarray(getattr(one, name)), getattr(other, name)) for name in names)


def test_a_model_whose_users_are_away_says_what_to_do_until_it_is_saved_or_collected(whole, tmp_path):
    model = away(whole)
    assert len(model.similar_items(0)[0]) == 10 and model.user_factors.shape == (USERS, 4)
    for ask in (
        lambda: model.recommend("u03"),
        lambda: model.users,
        lambda: model.preference("u03", 0, 1),
        lambda: model.recommend_all(output=tmp_path / "lists"),
        lambda: np.asarray(model.user_factors),
        lambda: model.state.seen,
    ):
        with pytest.raises(
            ValueError,
            match=r"with the workers that learnt it: call save\('folder/'\) first, or fit with engine=Ray",
        ):
            ask()
    holder = model.state.away
    collect(model)
    assert same(model, whole) and holder.ended and (model.state.seen != whole.state.seen).nnz == 0
    collect(model)
    assert same(model, whole)


def test_a_folder_is_read_by_shard_and_answers_as_the_whole_model(whole, tmp_path):
    model = away(whole)
    holder = model.state.away
    model.save(tmp_path / "model")
    assert holder.ended
    mapped, loaded = SAD.load(tmp_path / "model", mmap=True), SAD.load(tmp_path / "model")
    assert isinstance(mapped.user_factors, StackedRows) and isinstance(loaded.user_factors, np.ndarray)
    for one in (model, mapped, loaded, SAD.load(tmp_path / "model", mmap=True, verify=True)):
        assert same(one, whole)
        for user in ("u00", "u06", "u07", "u20", "u29"):
            assert one.recommend(user)[0].tolist() == whole.recommend(user)[0].tolist()
            assert one.explain(user, 1, 2).margin == whole.explain(user, 1, 2).margin
        asked = ["u22", "u03", "u21", "u07"]
        assert np.array_equal(one.recommend(asked, N=5)[1], whole.recommend(asked, N=5)[1])
        assert np.array_equal(one.preference(asked, 1, [2, 3, 4, 5]), whole.preference(asked, 1, [2, 3, 4, 5]))
        assert np.array_equal(one.similar_users("u03", 5)[0], whole.similar_users("u03", 5)[0])
        assert np.array_equal(one.intransitivity(one.users), whole.intransitivity(one.users))
        assert np.array_equal(one.recommend(None, N=3)[0], whole.recommend(None, N=3)[0])
        assert np.array_equal(one.recommend_for([1, 2], 3)[0], whole.recommend_for([1, 2], 3)[0])
    lists = mapped.recommend_all(N=3, output=tmp_path / "lists", part_users=8, show_progress=False).collect()
    assert lists.equals(whole.recommend_all(N=3, output=tmp_path / "others", show_progress=False).collect())
    mapped.save(tmp_path / "one.sad")
    assert same(SAD.load(tmp_path / "one.sad"), whole)


def test_a_save_that_fails_leaves_the_old_model_and_a_later_one_tidies_up(whole, tmp_path):
    folder = tmp_path / "model"
    away(whole).save(folder)
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(RuntimeError, match="a worker is gone"):
        away(whole, fails=True).save(folder)
    assert same(SAD.load(folder), whole) and {path.name for path in folder.iterdir()} > before
    away(whole).save(folder)
    assert len(list(folder.iterdir())) == len(before) and same(SAD.load(folder), whole)


def test_damage_is_noticed_and_named(whole, tmp_path):
    folder = tmp_path / "model"
    away(whole).save(folder)
    shard = sorted(folder.glob("users-*"))[2]
    content = shard.read_bytes()
    shard.write_bytes(content[:-4] + b"\x01\x02\x03\x04")
    with pytest.raises(ModelFileError, match=r"users-2.*does not fit its checksum"):
        SAD.load(folder)
    shard.write_bytes(sorted(folder.glob("users-*"))[0].read_bytes())
    with pytest.raises(ModelFileError, match=r"is not the file that model\.json names"):
        SAD.load(folder, mmap=True)
    shard.unlink()
    with pytest.raises((ModelFileError, FileNotFoundError), match="users-2"):
        SAD.load(folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["users"][0]["name"] = "../users"
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match=r"model\.json' cannot be read"):
        SAD.load(folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(ModelFileError, match=r"it has no model\.json, which is written last"):
        SAD.load(folder)


def test_no_folder_with_other_things_in_it_is_written_to(whole, tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(ValueError, match="holds other files: give a new folder"):
        away(whole).save(tmp_path)
    with pytest.raises(ValueError, match="is a file, and this model is saved to a folder"):
        away(whole).save(tmp_path / "mine.txt")
    with pytest.raises(ValueError, match="a folder that all nodes have mounted, not to 's3://bucket/model'"):
        away(whole).save("s3://bucket/model")


def test_stacked_rows_are_those_of_one_array():
    rng = np.random.default_rng(0)
    array = rng.random((USERS, 3)).astype(np.float32)
    rows = StackedRows([array[a:b] for a, b in pairwise(CUTS)])
    for key in (
        0,
        -1,
        7,
        slice(5, 25),
        slice(None),
        [29, 0, 7, 7],
        np.array([[1, 28], [6, 21]]),
        array[:, 0] > 0.5,
        [],
    ):
        key = np.asarray(key, int) if isinstance(key, list) else key
        assert np.array_equal(rows[key], array[key]) and rows[key].shape == array[key].shape
    assert np.array_equal(rows.std(axis=0), array.std(axis=0)) and rows.dtype == np.float32 and len(rows) == USERS
    with pytest.raises(IndexError, match="no row 30 of 30"):
        rows[[30]]
    matrix = sp.random(USERS, 9, 0.3, "csr", np.float32, rng)
    stacked = StackedMatrix([matrix[a:b] for a, b in pairwise(CUTS)])
    for key in (slice(5, 25), [29, 0, 7, 7], [3], np.array([], int), range(2, 9)):
        wanted = matrix[np.asarray(key) if isinstance(key, range) else key]
        assert (stacked[key] != wanted).nnz == 0 and stacked[key].shape == wanted.shape
    assert stacked.nnz == matrix.nnz and np.array_equal(stacked.indices, matrix.indices)


def test_a_folder_that_lacks_a_file_is_refused_by_name(whole, tmp_path):
    away(whole).save(tmp_path / "model")
    gone = sorted((tmp_path / "model").glob("users-1-*.sad"))[0]
    gone.unlink()
    with pytest.raises(ModelFileError, match=f"lacks {gone.name}"):
        SAD.load(tmp_path / "model")


def forged(folder, change):
    """Change what the manifest of a folder says, and give it the right checksum."""
    content = json.loads((folder / MANIFEST).read_text())
    del content["checksum"]
    change(content["users"])
    (folder / MANIFEST).write_text(json.dumps({**content, "checksum": fingerprint(content)}))


def test_positions_of_users_that_are_not_whole_numbers_are_refused(whole, tmp_path):
    def change(users):
        users[0]["last"] = users[1]["first"] = 7.0

    away(whole).save(tmp_path / "model")
    forged(tmp_path / "model", change)
    with pytest.raises(ModelFileError, match="do not follow each other"):
        SAD.load(tmp_path / "model")


def test_a_file_whose_name_no_disk_takes_is_lacking(whole, tmp_path):
    away(whole).save(tmp_path / "model")
    forged(tmp_path / "model", lambda users: users[0].update(name="u" * 300))
    with pytest.raises(ModelFileError, match="lacks uuu"):
        SAD.load(tmp_path / "model")


def test_a_file_that_does_not_tell_what_its_users_have_seen_is_refused(whole, tmp_path):
    away(whole).save(tmp_path / "model")
    path = sorted((tmp_path / "model").glob("users-0-*.sad"))[0]
    arrays, header = read_arrays(path, "users")
    kept = {name: np.array(array) for name, array in arrays.items() if not name.startswith("seen_")}
    write_arrays(path, kept, header)
    forged(tmp_path / "model", lambda users: users[0].update(checksum=checksum_of(path)))
    with pytest.raises(ModelFileError, match="does not tell what its users have seen"):
        SAD.load(tmp_path / "model")
