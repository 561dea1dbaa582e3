"""Attempts at a fit, with workers in this process: what is left of a lost one, and of a program that was killed."""

import importlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from sadrec import SAD
from sadrec.cluster import actors
from sadrec.cluster.actors import Actors, Lost
from sadrec.cluster.layout import REST
from sadrec.models import CheckpointError
from tests.cluster.local import Engine, Local, take_the_place_of_actors
from tests.cluster.scenes import LONGER, same, table, written

pytestmark = pytest.mark.filterwarnings("ignore:.*rows repeat a")


@pytest.fixture
def workers(monkeypatch):
    return take_the_place_of_actors(monkeypatch)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return written(tmp_path_factory.mktemp("run") / "data", table())


@pytest.fixture(scope="module")
def whole(data):
    return SAD(**LONGER).fit(data, False)


def fit(data, workers=2, **options):
    return SAD(**LONGER).fit(data, False, engine=Engine(workers=workers), **options)


class Once(Local):
    """The second worker is lost when the first has given its parameters back, and so is what the epoch began with."""

    def call(self, worker, method, *arguments, returns=None):
        if method == "training.users" and worker == 0 and len(self.started) == 1:
            self.lost.append("users")
            return Local.__mro__[1].call(self, worker, method, *arguments)
        if method == "training.gather" and len(self.started) == 2:
            raise Lost("what was sent is gone")
        return super().call(worker, method, *arguments, returns=returns)


def test_a_worker_lost_while_parameters_come_back_costs_no_bit(monkeypatch, data, whole):
    take_the_place_of_actors(monkeypatch, Once)
    model = fit(data)
    assert same(model, whole) and len(Once.started) == 3 and len(model.state.history) == 4


class Failed:
    """The reference to an answer that never comes."""


class Behind(Local):
    """The first time that rows are put in order, the first worker does not get them; nobody is dead."""

    def call(self, worker, method, *arguments, returns=None):
        if method == "training.gather" and arguments[2] == REST and worker == 0 and len(self.started) == 1:
            return Failed()
        return super().call(worker, method, *arguments, returns=returns)

    def get(self, references):
        if any(isinstance(one, Failed) for one in references):
            raise Lost("what was sent is gone")
        return references


@pytest.mark.parametrize("saved", [False, True])
def test_rows_that_did_not_come_are_not_taken_for_rows_in_order(monkeypatch, data, whole, saved, tmp_path):
    take_the_place_of_actors(monkeypatch, Behind)
    model = fit(data, checkpoint=tmp_path if saved else None)
    assert same(model, whole) and len(Behind.started) == 2
    assert not saved or same(fit(data, checkpoint=tmp_path), whole)  # what the last checkpoint holds


def stopped_after(epoch):
    def call(now, figures, model):
        if now == epoch:
            raise KeyboardInterrupt

    return [call]


def interrupted(data, folder, epoch=4):
    """Leave the checkpoints of the two epochs before one."""
    with pytest.raises(KeyboardInterrupt):
        fit(data, checkpoint=folder, callbacks=stopped_after(epoch))


def test_a_late_worker_of_a_killed_program_writes_to_no_file_of_the_next(workers, data, tmp_path):
    written = []
    for _ in range(2):
        interrupted(data, tmp_path, 2)
        written.append({path.name for path in tmp_path.glob("*.rows")})
        for path in tmp_path.glob("*.manifest"):
            path.unlink()
    assert written[0] and written[1] - written[0] and len(written[1] - written[0]) == len(written[0])


def test_a_folder_of_checkpoints_belongs_to_one_fit_at_a_time(workers, data, whole, tmp_path):
    refusals = []

    def second(now, figures, model):
        with pytest.raises(CheckpointError) as refused:
            fit(data, checkpoint=tmp_path)
        refusals.append(str(refused.value))

    assert same(fit(data, checkpoint=tmp_path, callbacks=[second]), whole)
    assert len(refusals) == 4 and all("is in use by another process" in text for text in refusals)
    assert same(fit(data, checkpoint=tmp_path), whole)  # afterwards nobody holds it


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def other_number(path):
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "epoch": content["epoch"] + 1}))


@pytest.mark.parametrize(
    ("damage", "names", "first"),
    [
        (cut, ["epoch-000003*.rows"], 3),
        (cut, ["epoch-000003.manifest"], 3),
        (other_number, ["epoch-000003.manifest"], 3),
        (cut, ["epoch-*.rows"], 1),
        (cut, ["epoch-000003*.rows", "epoch-000002.manifest"], 1),
    ],
)
def test_a_damaged_checkpoint_is_said_and_the_one_before_is_used(
    workers, data, whole, tmp_path, caplog, damage, names, first
):
    interrupted(data, tmp_path)
    epochs = []
    for name in names:
        for path in tmp_path.glob(name):
            damage(path)
    model = fit(data, 3, checkpoint=tmp_path, callbacks=[lambda now, *rest: epochs.append(now)])
    assert same(model, whole) and epochs == list(range(first, 5)) and len(model.state.history) == 4
    assert sum("damaged" in record.getMessage() for record in caplog.records) >= len(names)
    epochs.clear()
    assert same(fit(data, checkpoint=tmp_path, callbacks=[lambda now, *rest: epochs.append(now)]), whole)
    assert not epochs  # the folder is whole again


def test_epochs_after_a_damaged_checkpoint_are_kept_although_there_are_later_files(workers, data, whole, tmp_path):
    interrupted(data, tmp_path)
    for path in tmp_path.glob("epoch-*.rows"):
        cut(path)
    interrupted(data, tmp_path, 2)
    epochs = []
    model = fit(data, checkpoint=tmp_path, callbacks=[lambda now, *rest: epochs.append(now)])
    assert same(model, whole) and epochs == [2, 3, 4]


def test_a_file_of_a_checkpoint_that_a_node_does_not_see_is_named(workers, data, tmp_path):
    interrupted(data, tmp_path)
    next(tmp_path.glob("epoch-000003*.rows")).unlink()
    with pytest.raises(FileNotFoundError, match=r"epoch-000003.* is not there on .*a folder that all nodes reach"):
        fit(data, checkpoint=tmp_path)


class Waiting:
    """What of Ray starting workers needs; they never start."""

    def remote(self, *arguments):
        return self

    def options(self, **options):
        return self

    @property
    def __ray_ready__(self):
        return self

    def wait(self, references, num_returns, timeout):
        return [], references

    def is_initialized(self):
        return False

    def kill(self, actor):
        raise AssertionError("asked without a cluster, Ray would start one")


def test_workers_whose_node_is_lost_before_they_start_are_not_waited_for(monkeypatch):
    pytest.importorskip("ray")
    groups, strategies, util = (
        importlib.import_module(f"ray.util{name}") for name in (".placement_group", ".scheduling_strategies", "")
    )
    place = SimpleNamespace(wait=lambda seconds: True)
    monkeypatch.setattr(actors, "ray", Waiting)
    monkeypatch.setattr(groups, "placement_group", lambda *given, **options: place)
    monkeypatch.setattr(strategies, "PlacementGroupSchedulingStrategy", lambda *given, **options: None)
    states = iter(["CREATED", "CREATED", "RESCHEDULING"])
    monkeypatch.setattr(util, "placement_group_table", lambda group: {"state": next(states)})
    with pytest.raises(Lost, match=r"a node was lost while workers started \(rescheduling places\)"):
        Actors(2, 1, 5.0, at_least=2)
    assert next(states, None) is None and not importlib.import_module("ray").is_initialized()


def test_what_a_callback_raises_is_raised_at_once(workers, data):
    def wrong(now, figures, model):
        raise np.exceptions.AxisError("a mistake of the user")

    with pytest.raises(np.exceptions.AxisError, match="a mistake of the user"):
        fit(data, callbacks=[wrong])
    assert len(workers.started) == 1 and workers.started[0].ended
