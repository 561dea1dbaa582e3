"""Files that workers read together, called one after another in this process: what one machine reads and trains."""

import numpy as np
import polars as pl
import pytest

from sadrec.cluster.conductor import Conductor
from sadrec.cluster.home import HomeWorker
from sadrec.cluster.settle import settle
from sadrec.data import Interactions
from sadrec.data.parquet import ParquetFiles
from sadrec.training.dataset import training_data
from sadrec.training.factors import initial_factors
from sadrec.training.settings import Settings
from sadrec.training.trainer import Trainer
from tests.cluster.test_conductor import SETTINGS, Here

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


def settled(folder, count, **reading):
    workers = [HomeWorker(number, count) for number in range(count)]
    return workers, settle(Here(workers), ParquetFiles([folder], **reading))


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_workers_read_what_one_machine_reads(tmp_path, kind, count):
    folder = written(tmp_path, table(kind))
    for mode, timestamp in (("last", "auto"), ("last", None), ("sum", "auto"), ("count", "auto"), ("max", "auto")):
        data = Interactions.read(folder, duplicates=mode, timestamp=timestamp)
        workers, found = settled(folder, count, duplicates=mode, timestamp=timestamp, weight="trust")
        merged = "sum" if mode == "count" else mode
        weights = Interactions.read(folder, rating="trust", duplicates=merged, timestamp=timestamp).matrix.data
        homes = [worker.home() for worker in workers]
        assert found.shape == data.shape and found.interactions == len(data) and found.has_ratings
        assert found.repeated == 1500 - len(data) and found.longest == np.diff(data.matrix.indptr).max()
        assert np.array_equal(np.concatenate([home.users for home in homes]), data.users)
        assert np.array_equal(np.concatenate([home.items for home in homes]), data.items)
        assert np.array_equal(np.concatenate([home.indices for home in homes]), data.matrix.indices)
        assert np.array_equal(np.concatenate([home.values for home in homes]), data.matrix.data)
        assert np.array_equal(np.concatenate([home.weights for home in homes]), weights)
        lengths = np.concatenate([np.diff(home.indptr) for home in homes])
        assert np.array_equal(lengths, np.diff(data.matrix.indptr))


def test_users_are_shared_by_interactions_and_the_digest_is_of_the_data(tmp_path):
    folder = written(tmp_path, table())
    found = {count: settled(folder, count) for count in (1, 2, 3)}
    assert len({result.digest for _, result in found.values()}) == 1
    held = [len(worker.home().indices) for worker in found[3][0]]
    assert max(held) < 1.5 * min(held)
    assert np.ptp(np.diff(found[3][1].bounds[0])) > 5  # while users are not: the first have more
    weighed = {settled(folder, count, weight="trust")[1].digest for count in (1, 2, 3)}
    assert len(weighed) == 1 and found[2][1].digest not in weighed
    assert settled(folder, 2, weight="rating", rating="trust")[1].digest not in weighed
    written(folder, table().with_columns(rating=pl.lit(1)))
    assert settled(folder, 2)[1].digest != found[2][1].digest


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, -0.5], r"a\.parquet: row 1 has the weight -0.5: weights must be finite and not negative"),
        ([None, 1.0], r"a\.parquet: row 0 has the weight nan"),
        (["much", "little"], r"a\.parquet: the weights are of type String, not numbers: is this the right column\?"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path, weights, said):
    pl.DataFrame({"user": [1, 2], "item": [1, 2], "trust": weights}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises((ValueError, TypeError), match=said):
        settled(tmp_path, 1, weight="trust")
    with pytest.raises(ValueError, match="there is no column 'faith' for the weight; the columns are 'user', 'item'"):
        settled(tmp_path, 1, weight="faith")


def test_ids_of_two_types_are_refused(tmp_path):
    pl.DataFrame({"user": [1, 2], "item": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"user": ["1", "2"], "item": [1, 2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(TypeError, match=r"the user ids are of several types \(<i8, text\): make them one"):
        settled(tmp_path, 2)


def weighed(folder, weight):
    data = Interactions.read(folder, duplicates="last")
    if weight is None:
        return training_data(data)
    return training_data(data, weights=Interactions.read(folder, duplicates="last", rating=weight).matrix.data)


@pytest.mark.parametrize("weight", [None, "trust"])
def test_the_lift_of_workers_is_that_of_one_machine(tmp_path, weight):
    folder = written(tmp_path, table(rows=3000))
    data = weighed(folder, weight)
    for count in (1, 2, 3):
        workers, _ = settled(folder, count, weight=weight)
        wanted = workers[0].choose_sample(*(worker.chosen() for worker in workers))
        wanted = wanted if count > 1 else (wanted,)
        sent = [worker.rows_of(users) for worker, users in zip(workers, wanted, strict=True)]
        assert workers[0].lift(*sent) == data.lift() != 0


VARIANTS = {
    "pairwise": {},
    "BPR with balance": {"learn_rivals": False, "bias": False, "negative_candidates": 1, "user_balance": 0.4},
    "softmax": {"loss": "softmax", "length": 2.0, "negatives": 4, "user_balance": 0.5},
    "adaptive": {"adaptive": True},
    "weights": {"user_balance": 0.4},
    "softmax with weights": {"loss": "softmax", "length": 2.0, "negatives": 4},
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_fit_has_the_bits_of_one_machine(tmp_path, name, count):
    folder = written(tmp_path, table("text"))
    settings = Settings(**{**SETTINGS, **VARIANTS[name]})
    weight = "trust" if "weights" in name else None
    data = weighed(folder, weight)
    first = initial_factors(*data.shape, 6, settings.init_scale, settings.learn_rivals, settings.bias, settings.seed)
    trainer = Trainer(first, settings, data.positives(settings), [], 1)
    expected = [trainer.train_epoch() for _ in range(trainer.epochs)]
    workers, found = settled(folder, count, weight=weight)
    scale = workers[0].balance_scale(settings.user_balance, *(worker.chosen() for worker in workers))
    for worker in workers:
        worker.begin(settings, found.longest, scale, None)
        worker.draw_first()
    conductor = Conductor(Here(workers), settings, True, 0, homes=True)
    figures = [conductor.train_epoch(epoch) for epoch in range(trainer.epochs)]
    users, items = data.shape
    rows = users * settings.factors + items * (2 * settings.factors if settings.learn_rivals else settings.factors)
    rows += items * settings.bias + (items * settings.factors if settings.adaptive else 0) + users
    rows += found.interactions * (1 if weight is None else 2)
    dealt = conductor.moved - sum(part.moved for part in conductor.times)
    assert dealt == pytest.approx(4 * rows * (count - 1) / count, rel=0.15)
    conductor.rest()
    held = [worker.held() for worker in workers]
    assert np.array_equal(np.concatenate([rows.users for rows in held]), trainer.factors.users)
    assert np.array_equal(np.concatenate([rows.items for rows in held]), trainer.factors.items)
    assert [one["log_likelihood"] for one in figures] == [one["log_likelihood"] for one in expected]
