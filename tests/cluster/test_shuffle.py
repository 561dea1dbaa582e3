"""Files that workers read together, called one after another in this process: what one machine reads and trains."""

import numpy as np
import polars as pl
import pytest

from campaigns._workers import WorkersHere
from sadrec import SAD
from sadrec.cluster.partition import partition
from sadrec.data import Interactions, ParquetFiles
from sadrec.models import settings_for
from sadrec.training.dataset import training_data
from sadrec.training.engine import decompose
from sadrec.training.sgd import spectrum

NAMES = {
    "numbers": lambda numbers: numbers * 7919 % 1000 - 300,
    "text": lambda numbers: pl.Series([f"{'x' * (n % 5)}é{n}" for n in numbers.tolist()]),
    "dates": lambda numbers: pl.Series(numbers).cast(pl.Date),
    "decimals": lambda numbers: (numbers - 20) / 4,
}


def table(kind="numbers", rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    user, item = (80 * rng.random(rows) ** 2).astype(np.int64), (47 * rng.random(rows) ** 2).astype(np.int64)
    columns = {"user": NAMES[kind](user), "item": NAMES[kind](item), "rating": rng.integers(1, 6, rows)}
    columns |= {"timestamp": rng.integers(50, size=rows)}
    return pl.DataFrame({**columns, "trust": rng.integers(8, size=rows) / 4})  # an eighth counts nothing


def written(folder, frame, cuts=(0, 0, 400, 1100, None)):
    for number in range(len(cuts) - 1):
        frame[cuts[number] : cuts[number + 1]].write_parquet(folder / f"part-{number}.parquet")
    return folder


def shared(folder, count, threads=1, **reading):
    """Return workers that have read the files, the data of each, and what the program knows of it."""
    workers = WorkersHere(count, threads)
    layout = partition(workers, ParquetFiles([folder], **reading))
    return workers, [worker.data for worker in workers.workers], layout


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_workers_read_what_one_machine_reads(tmp_path, kind, count):
    folder = written(tmp_path, table(kind))
    for mode, timestamp in (("last", "auto"), ("last", None), ("sum", "auto"), ("count", "auto"), ("max", "auto")):
        data = Interactions.read(folder, duplicates=mode, timestamp=timestamp)
        _, parts, layout = shared(folder, count, duplicates=mode, timestamp=timestamp, weight="trust")
        merged = "sum" if mode == "count" else mode
        weights = Interactions.read(folder, rating="trust", duplicates=merged, timestamp=timestamp).matrix.data
        helds = [part.held for part in parts]
        assert layout.shape == data.shape and layout.interactions == len(data) and layout.has_ratings
        assert layout.repeated == 1500 - len(data) and layout.longest == np.diff(data.matrix.indptr).max()
        assert np.array_equal(np.concatenate([held.users for held in helds]), data.users)
        assert np.array_equal(np.concatenate([held.items for held in helds]), data.items)
        assert np.array_equal(np.concatenate([held.indices for held in helds]), data.matrix.indices)
        assert np.array_equal(np.concatenate([held.values for held in helds]), data.matrix.data)
        assert np.array_equal(np.concatenate([held.weights for held in helds]), weights)
        lengths = np.concatenate([np.diff(held.indptr) for held in helds])
        assert np.array_equal(lengths, np.diff(data.matrix.indptr))


def test_users_are_shared_by_interactions_and_the_digest_is_of_the_data(tmp_path):
    folder = written(tmp_path, table())
    by_count = {count: shared(folder, count)[1:] for count in (1, 2, 3)}
    assert len({result.digest for _, result in by_count.values()}) == 1
    held = [len(part.held.indices) for part in by_count[3][0]]
    assert max(held) < 1.5 * min(held)
    assert np.ptp(np.diff(by_count[3][1].bounds[0])) > 5  # while users are not: the first have more
    weighed = {shared(folder, count, weight="trust")[2].digest for count in (1, 2, 3)}
    assert len(weighed) == 1 and by_count[2][1].digest not in weighed
    assert shared(folder, 2, weight="rating", rating="trust")[2].digest not in weighed
    written(folder, table().with_columns(rating=pl.lit(1)))
    assert shared(folder, 2)[2].digest != by_count[2][1].digest


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -0.5], r"a\.parquet: row 1 has the weight -0.5: weights must be finite and not negative"),
        ([None, 1.0], r"a\.parquet: row 0 has the weight nan"),
        (["much", "little"], r"a\.parquet: the weights are of type String, not numbers: is this the right column\?"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path, weights, message):
    pl.DataFrame({"user": [1, 2], "item": [1, 2], "trust": weights}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises((ValueError, TypeError), match=message):
        shared(tmp_path, 1, weight="trust")
    with pytest.raises(ValueError, match="there is no column 'faith' for the weight: the columns are 'user', 'item'"):
        shared(tmp_path, 1, weight="faith")


def test_ids_of_two_types_are_refused(tmp_path):
    pl.DataFrame({"user": [1, 2], "item": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"user": ["1", "2"], "item": [1, 2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(TypeError, match=r"the user ids are of several types \(<i8, text\): make them one"):
        shared(tmp_path, 2)


def weighed(folder, weight):
    data = Interactions.read(folder, duplicates="last")
    if weight is None:
        return training_data(data)
    return training_data(data, weights=Interactions.read(folder, duplicates="last", rating=weight).matrix.data)


@pytest.mark.parametrize("weight", [None, "trust"])
@pytest.mark.parametrize("most", [2_000_000, 1500])
def test_the_sample_of_workers_is_that_of_one_machine(tmp_path, monkeypatch, weight, most):
    monkeypatch.setattr(spectrum, "MOST_ENTRIES", most)
    folder = written(tmp_path, table(rows=3000))
    data = weighed(folder, weight)
    settings = settings_for(SAD(4, advanced={"length": 2.0}), Interactions.from_csr(data.matrix))
    expected = data.survey(settings, None, None, 1), decompose(data.sample(), 5)
    for count in (1, 2, 3):
        _, parts, _ = shared(folder, count, weight=weight)

        def sent(parts=parts):
            wanted = parts[0].choose_sample(*(part.chosen() for part in parts))
            return [part.rows_of(users) for part, users in zip(parts, wanted, strict=True)]

        assert parts[0].survey(settings, None, None, 1, *sent()) == expected[0]
        for ours, theirs in zip(parts[0].spectrum(5, *sent()), expected[1], strict=True):
            np.testing.assert_array_equal(ours, theirs)
