"""Model files: round trips, and files that are not what they should be."""

import datetime
import errno
import json
import os

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sadrec import BPR, SAD, Comparisons, Interactions
from sadrec.models import ModelFileError
from tests.rewriting import rewrite

IDS = {
    "whole numbers": [10, -3, 2**62],
    "large": [2**63 + 1, 5, 2**64 - 1],
    "text": ["ann", "zoë", "漢字 with spaces"],
    "numbers": [0.5, -1.25, 1e300],
    "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
}


def model_of(users, **changed):
    items = ["tea", "ale", "gin", "rum"]
    frame = pl.DataFrame({"user": [users[0], users[1], users[2], users[2]], "item": [*items[:3], items[3]]})
    return SAD(factors=3, iterations=2, **changed).fit(Interactions.from_frame(frame, user="user", item="item"))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.sad"
    model_of([1, 2, 3], bias=True).save(path)
    return path


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("mmap", [False, True])
def test_a_model_comes_back_as_it_was(tmp_path, kind, mmap):
    model = model_of(IDS[kind], bias=True)
    model.save(tmp_path / "m.sad")
    back = SAD.load(tmp_path / "m.sad", mmap=mmap)
    assert type(back) is SAD and back.get_params() == {**model.get_params(), "random_state": 0}
    assert back.settings == model.settings and back.state.history == model.state.history
    for name in ("user_factors", "item_factors", "rival_factors", "item_bias", "users", "items"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
        assert getattr(back, name).dtype == getattr(model, name).dtype
    assert (back.state.seen != model.state.seen).nnz == 0
    for user in model.users:
        np.testing.assert_array_equal(back.recommend(user)[0], model.recommend(user)[0])
    again = SAD(**back.get_params()).fit(back.state.seen)
    assert again.settings.factors == 3


def test_a_memory_mapped_model_leaves_its_numbers_in_the_file(saved):
    factors = SAD.load(saved, mmap=True).user_factors
    base = factors
    while not isinstance(base, np.memmap) and base.base is not None:
        base = base.base
    assert isinstance(base, np.memmap) and not factors.flags.writeable


def test_settings_come_back_as_they_were_given_also_where_factors_were_dropped(tmp_path):
    user, winner, step = np.random.default_rng(6).integers((0, 0, 1), (8, 10, 10), size=(150, 3)).T  # noise
    comparisons = Comparisons.from_indices(user, winner, (winner + step) % 10, users=np.arange(8), items=np.arange(10))
    model = SAD(factors=4, iterations=10, num_threads=1).fit(comparisons, show_progress=False)
    assert model.state.parameters.n_factors < 4
    model.save(tmp_path / "m.sad")
    assert SAD.load(tmp_path / "m.sad").get_params() == model.get_params()


def test_bpr_is_loaded_as_bpr_and_not_mistaken_for_sad(tmp_path, saved):
    BPR(factors=2, iterations=1).fit(sp.identity(4)).save(tmp_path / "b.sad")
    assert type(SAD.load(tmp_path / "b.sad")) is BPR
    with pytest.raises(ModelFileError, match="holds a SAD model, not a BPR model"):
        BPR.load(saved)


def test_saving_replaces_the_old_file_whole(saved):
    SAD(factors=5, iterations=1).fit(sp.identity(4)).save(saved)
    assert SAD.load(saved).factors == 5
    assert [path.name for path in saved.parent.iterdir()] == ["m.sad"]


def test_a_failed_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    def full_disk(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match=r"m\.sad' cannot be written: No space left"):
        SAD.load(saved).save(saved)
    assert SAD.load(saved).factors == 3
    assert [path.name for path in saved.parent.iterdir()] == ["m.sad"]


def test_saving_to_a_folder_is_refused(saved):
    with pytest.raises(IsADirectoryError, match="is a folder: name the file to write"):
        SAD.load(saved).save(saved.parent)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        SAD.load(tmp_path / "none.sad")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 60, 400, -1])
def test_a_file_cut_short_is_refused(saved, size):
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(ModelFileError, match=r"damaged or cut short|cannot be read"):
        SAD.load(saved)


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"\x80\x04\x95", b"{}", b"\xff" * 64, b"\x00" * 64])
def test_files_of_other_kinds_are_refused(tmp_path, content):
    path = tmp_path / "other.sad"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        SAD.load(path)


def rewritten(path, change):
    """Change the header of a file, keeping its numbers."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    meta = json.loads(header["__metadata__"]["sadrec"])
    change(header, meta)
    header["__metadata__"]["sadrec"] = json.dumps(meta)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])


@pytest.mark.parametrize(
    "change",
    [
        lambda h, m: m.update(format=2),
        lambda h, m: m.update(kind="draws"),
        lambda h, m: m.update({"class": "os.system"}),
        lambda h, m: m.update({"class": ["SAD"]}),
        lambda h, m: m.update(settings={"factors": 3}),
        lambda h, m: m.update(settings={**m["settings"], "evil": 1}),
        lambda h, m: m.update(settings={**m["settings"], "origins": 5}),
        lambda h, m: m.update(ids={"users": "O", "items": "text"}),
        lambda h, m: m.update(ids={}),
        lambda h, m: m.update(params=None),
        lambda h, m: m.pop("history"),
        lambda h, m: h["user_factors"].update(shape=[10**12, 10**6]),
        lambda h, m: h["user_factors"].update(dtype="F64"),
        lambda h, m: h["user_factors"].update(data_offsets=[0, 10**15]),
        lambda h, m: h.pop("item_factors"),
        lambda h, m: h["items_offsets"].update(shape=[1]),
    ],
)
def test_hostile_headers_are_refused_with_one_kind_of_error(saved, change):
    rewritten(saved, change)
    with pytest.raises(ModelFileError):
        SAD.load(saved)


def wild_offsets(kind, *values):
    """Return a change that sends compiled code far outside the arrays, in numbers of a kind."""

    def change(arrays, header):
        offsets = arrays["seen_indptr"].astype(kind)
        offsets[1 : 1 + len(values)] = values
        arrays["seen_indptr"] = offsets

    return change


def one_endless_id(arrays, header):
    """Terabytes, if all ids were kept as wide as the longest: 4 bytes x 100,000 ids x 10,000,000 characters."""
    users, longest = 10**5, 10**7
    for name in [name for name in arrays if name.startswith("seen")]:
        del arrays[name]
    arrays["user_factors"] = np.zeros((users, 3), np.float32)
    arrays["users"] = np.full(users - 1 + longest, ord("x"), np.uint8)
    arrays["users_offsets"] = np.append(np.arange(users), users - 1 + longest)
    header["ids"]["users"] = "text"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (wild_offsets(np.uint64, 2**40), "out of order"),
        (wild_offsets(np.float64, np.nan), "cut short"),
        (wild_offsets(np.int64, 2**63 - 1, -2), "out of order"),
        (lambda a, h: a.update(seen_indices=a["seen_indices"].astype(np.float64)), "seen in training"),
        (lambda a, h: a.update(seen_data=np.full_like(a["seen_data"], np.nan)), "seen in training"),
        (one_endless_id, "more than 256"),
        (lambda a, h: a.update({name: a[name][:, :0] for name in a if name.endswith("_factors")}), "do not fit"),
        (lambda a, h: h["params"].update(num_threads="many"), "num_threads"),
        (lambda a, h: h.update(history="abc"), "history"),
    ],
)
@pytest.mark.parametrize("mmap", [False, True])
def test_well_formed_files_with_hostile_content_are_refused_before_anything_follows_them(saved, change, message, mmap):
    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=message):
        SAD.load(saved, mmap=mmap).recommend(1)


def test_what_was_seen_comes_back_whatever_its_type(tmp_path):
    seen = sp.csr_matrix(np.array([[True, False, True]]))
    SAD.from_factors([[1.0]], [[1.0], [2.0], [3.0]], seen=seen).save(tmp_path / "m.sad")
    assert SAD.load(tmp_path / "m.sad").recommend(0)[0].tolist() == [1]


def test_settings_in_a_file_cannot_set_other_attributes(saved):
    rewrite(saved, lambda arrays, header: header["params"].update(recommend="gone", __class__="x"))
    model = SAD.load(saved)
    assert callable(model.recommend) and type(model) is SAD


def broken_item(arrays, header):
    arrays["item_factors"][0, 0] = np.nan


def test_numbers_that_are_not_finite_are_refused(saved):
    rewrite(saved, broken_item)
    with pytest.raises(ModelFileError, match="finite"):
        SAD.load(saved)


def test_a_mapped_file_is_read_only_when_asked_and_verified_on_request(saved):
    rewrite(saved, broken_item)
    model = SAD.load(saved, mmap=True)  # not a number was looked at
    assert np.isnan(model.item_factors[0, 0])
    with pytest.raises(ModelFileError, match="finite"):
        SAD.load(saved, mmap=True, verify=True)
    raw = bytearray(saved.read_bytes())
    raw[-1] ^= 1
    saved.write_bytes(raw)
    SAD.load(saved, mmap=True)
    with pytest.raises(ModelFileError, match="checksum"):
        SAD.load(saved, mmap=True, verify=True)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_flipped_bytes_are_refused_or_harmless(saved, data):
    raw = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = saved.parent / "flipped.sad"
    path.write_bytes(raw)
    try:
        model = SAD.load(path)
    except ModelFileError:
        return
    model.recommend(model.users[0])


def answers():
    rng = np.random.default_rng(0)
    users, winners = rng.integers(5, size=60), rng.integers(6, size=60)
    losers = (winners + rng.integers(1, 6, 60)) % 6
    return Comparisons.from_frame(pl.DataFrame({"user": users, "winner": winners, "loser": losers}))


@pytest.mark.parametrize("data", [lambda: sp.csr_matrix(np.random.default_rng(0).random((20, 30)) < 0.3), answers])
def test_files_of_equal_fits_are_equal_to_the_byte(tmp_path, data):
    for name in ("one", "two"):
        folder = tmp_path / f"{name}.checkpoint"
        SAD(factors=3, iterations=3).fit(data(), checkpoint=folder).save(tmp_path / f"{name}.sad")
    assert (tmp_path / "one.sad").read_bytes() == (tmp_path / "two.sad").read_bytes()
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / f"{name}.checkpoint").glob("*.checkpoint")}
        for name in ("one", "two")
    )
    assert len(one) == 2 and one == two
