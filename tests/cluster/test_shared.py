"""A whole fit on files with workers in this process: what the program does with what they hold."""

from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray, shared
from sadrec.cluster.actors import ActorAtHome, Lost
from sadrec.models import DivergedError
from tests.cluster.scenes import LONGER, SMALL, same
from tests.cluster.test_conductor import Here
from tests.cluster.test_home import table, written


class Local(Here):
    """Workers in this process; ``lost`` are the methods with which a worker is lost, once each."""

    lost: ClassVar[list] = []
    started: ClassVar[list] = []

    def __init__(self, kind, count, threads, seconds, *, at_least):
        super().__init__([ActorAtHome(number, count, threads) for number in range(count)])
        self.places, self.ended = [("here", 0)] * count, False
        self.started.append(self)

    def call(self, worker, method, *arguments, returns=1):
        if self.ended or method in self.lost:
            self.lost[:] = [name for name in self.lost if name != method]
            raise Lost(f"nobody does {method}")
        return super().call(worker, method, *arguments, returns=returns)

    def end(self):
        self.ended = True


class OnFiles(Ray):
    """The engine without a cluster."""

    def _connect(self):
        return False


pytestmark = pytest.mark.filterwarnings("ignore:.*rows repeat a")


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(shared, "Actors", Local)
    monkeypatch.setattr(Local, "lost", [])
    monkeypatch.setattr(Local, "started", [])
    return Local


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    return written(tmp_path / "data", table("text"))


def whole(data, **settings):
    return SAD(**{**LONGER, **settings}).fit(Interactions.read(data, duplicates="last"), False)


def test_a_fit_is_collected_or_saved_and_lets_the_workers_go(workers, data, tmp_path):
    expected = whole(data)
    with pytest.warns(UserWarning, match="rows repeat a .user, item. pair: kept the latest of each"):
        model = SAD(**LONGER).fit(data, False, engine=OnFiles(workers=3))
    assert not workers.started[0].ended and len(model.history) == 4
    model.save(tmp_path / "model")
    assert workers.started[0].ended and same(SAD.load(tmp_path / "model"), expected)
    model = SAD(**LONGER).fit(f"{data}/part-*.parquet", False, engine=OnFiles(workers=2, collect=True))
    assert workers.started[1].ended and same(model, expected) and (model.seen != expected.seen).nnz == 0
    assert model.recommend(model.users[3])[0].tolist() == expected.recommend(model.users[3])[0].tolist()


@pytest.mark.parametrize("method", ["read", "merge_ids", "settle", "move_in", "lift", "balance_scale", "begin"])
def test_what_is_lost_while_files_are_read_is_read_again(workers, data, method, caplog):
    settings = {"factors": 4, "iterations": 2, "blocks": 5, "user_balance": 0.3}
    expected = SAD(**settings).fit(Interactions.read(data, duplicates="last"), False)
    workers.lost.append(method)
    model = SAD(**settings).fit(data, False, engine=OnFiles(workers=2, collect=True))
    assert same(model, expected) and len(workers.started) == 2 and len(caplog.records) == 1


def test_a_fit_that_diverges_leaves_the_users_of_the_last_good_epoch_with_the_workers(workers, data):
    wild = {"learning_rate": 0.6, "schedule": "constant", "regularization": 0.0, "rival_regularization": 0.0}
    one, model = (SAD(**{**LONGER, **wild}) for _ in range(2))
    with pytest.raises(DivergedError, match=r"diverged in epoch 3 .*lower learning_rate") as here:
        one.fit(Interactions.read(data, duplicates="last"), False)
    with pytest.raises(DivergedError) as there:
        model.fit(data, False, engine=OnFiles(workers=2))
    assert str(here.value) == str(there.value) and not workers.started[0].ended
    assert same(model.collect(), one) and len(model.history) == 2


def test_users_that_are_lost_before_they_are_saved_are_named_and_the_workers_end(workers, data, tmp_path):
    model = SAD(**SMALL).fit(data, False, engine=OnFiles(workers=2))
    workers.lost.append("write_users")
    with pytest.raises(RuntimeError, match=r"what was learnt is gone with a worker .*same checkpoint="):
        model.save(tmp_path / "model")
    assert workers.started[0].ended and not (tmp_path / "model" / "model.json").exists()


def test_files_that_change_while_they_are_trained_on_are_refused(workers, data):
    def change(epoch, figures, model):
        written(data, table("text", seed=1))
        workers.lost += ["begin_epoch", "move_in"]

    with pytest.raises(ValueError, match="the files have changed since they were read: fit anew"):
        SAD(**LONGER).fit(data, False, engine=OnFiles(workers=2), callbacks=[change])


@pytest.mark.parametrize(
    ("settings", "given", "said"),
    [
        ({}, {"weights": [1]}, r"weights needs the data in this process: read the files first \(Interactions.read\)"),
        ({}, {"dislikes": 3}, "dislikes needs the data in this process"),
        ({}, {"validation": np.eye(3)}, "validation and patience need all parameters in one place"),
        ({"order_share": 0.5}, {}, r"order_share=0.5 needs all interactions in one place: leave it out"),
        ({"negative_sampling": "popular"}, {}, "negative_sampling='popular' needs all interactions in one place"),
    ],
)
def test_what_needs_all_data_in_one_place_is_refused_and_the_workers_end(workers, data, settings, given, said):
    with pytest.raises(ValueError, match=said):
        SAD(**{**SMALL, **settings}).fit(data, False, engine=OnFiles(workers=2), **given)
    assert all(started.ended for started in workers.started)


def test_the_command_line_fits_several_files_here_and_on_workers(workers, data, tmp_path, monkeypatch):
    monkeypatch.setattr(Ray, "_connect", lambda engine: False)
    files = sorted(map(str, data.glob("*.parquet")))
    options = ["--factors", "4", "--iterations", "2", "--blocks", "3", "--quiet"]
    expected = SAD(factors=4, iterations=2, blocks=3).fit(Interactions.read(data, duplicates="last"), False)
    for name, given in (("several", files), ("folder", [str(data)])):
        answer = CliRunner().invoke(main, ["fit", *given, "-o", f"{tmp_path}/{name}.sad", *options])
        assert answer.exit_code == 0, answer.output
        assert same(SAD.load(tmp_path / f"{name}.sad"), expected) and not workers.started
    for output in ("model/", "model.sad"):
        answer = CliRunner().invoke(main, ["fit", *files, "-o", f"{tmp_path}/{output}", *options, "--engine", "ray"])
        assert answer.exit_code == 0, answer.output
        assert same(SAD.load(tmp_path / output), expected)
    assert (tmp_path / "model" / "model.json").is_file() and (tmp_path / "model.sad").is_file()
    assert len(workers.started) == 2 and all(started.ended for started in workers.started)
    answer = CliRunner().invoke(main, ["fit", *files, "-o", f"{tmp_path}/model/", *options])
    assert answer.exit_code == 2 and "a model is one only where workers read Parquet" in answer.output


def test_an_item_with_nearly_all_rows_leaves_workers_without_items(workers, tmp_path):
    rng = np.random.default_rng(0)
    item = np.where(rng.random(900) < 0.95, 7, rng.integers(20, size=900))
    user = np.where(rng.random(900) < 0.9, rng.integers(3, size=900), rng.integers(40, size=900))
    names = {"user": [f"u{n}" for n in user.tolist()], "item": [f"i{n}" for n in item.tolist()]}
    pl.DataFrame({**names, "timestamp": np.arange(900)}).write_parquet(tmp_path / "a.parquet")
    model = SAD(**SMALL).fit(tmp_path / "a.parquet", False, engine=OnFiles(workers=3))
    bounds = model._fitted.away.settled.bounds[1]
    assert (np.diff(bounds) == 0).any()
    model.save(tmp_path / "model")
    expected = SAD(**SMALL).fit(Interactions.read(tmp_path / "a.parquet", duplicates="last"), False)
    assert same(SAD.load(tmp_path / "model"), expected)
