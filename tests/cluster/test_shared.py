"""A whole fit on files with workers in this process: what the program does with what they hold."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons, Interactions
from sadrec._record import CheckpointError
from sadrec.cli import main
from sadrec.cluster import Ray
from sadrec.data.interactions import weights_in
from sadrec.models import DivergedError
from sadrec.models.fitting import collect
from tests.cluster.local import Engine, take_the_place_of_actors
from tests.cluster.scenes import LONGER, SMALL, same
from tests.cluster.test_home import table, written

pytestmark = pytest.mark.filterwarnings("ignore:.*rows repeat a")


@pytest.fixture
def workers(monkeypatch):
    return take_the_place_of_actors(monkeypatch)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    return written(tmp_path / "data", table("text"))


def whole(data, **settings):
    return SAD(**{**LONGER, **settings}).fit(Interactions.read(data, duplicates="last"), False)


def test_a_fit_is_collected_or_saved_and_lets_the_workers_go(workers, data, tmp_path):
    expected = whole(data)
    with pytest.warns(UserWarning, match="rows repeat a .user, item. pair: kept the latest of each"):
        model = SAD(**LONGER).fit(data, False, engine=Engine(workers=3))
    assert not workers.started[0].ended and len(model.state.history) == 4
    model.save(tmp_path / "model")
    assert workers.started[0].ended and same(SAD.load(tmp_path / "model"), expected)
    model = SAD(**LONGER).fit(f"{data}/part-*.parquet", False, engine=Engine(workers=2, collect=True))
    assert workers.started[1].ended and same(model, expected) and (model.state.seen != expected.state.seen).nnz == 0
    assert model.recommend(model.users[3])[0].tolist() == expected.recommend(model.users[3])[0].tolist()


@pytest.mark.parametrize("method", ["read", "merge_ids", "settle", "move_in", "lift", "balance_scale", "begin"])
def test_what_is_lost_while_files_are_read_is_read_again(workers, data, method, caplog):
    settings = {"factors": 4, "iterations": 2, "blocks": 5, "advanced": {"user_balance": 0.3}}
    expected = SAD(**settings).fit(Interactions.read(data, duplicates="last"), False)
    workers.lost.append(method)
    model = SAD(**settings).fit(data, False, engine=Engine(workers=2, collect=True))
    assert same(model, expected) and len(workers.started) == 2 and len(caplog.records) == 1


@pytest.mark.parametrize("method", ["held_items", "item_ids", "held_users", "home"])
def test_what_is_lost_while_the_fit_brings_it_here_is_learnt_again(workers, data, method):
    def lose(*told):
        if told[0] == LONGER["iterations"] and len(workers.started) == 1:
            workers.lost.append(method)

    model = SAD(**LONGER).fit(data, False, engine=Engine(workers=2, collect=True), callbacks=[lose])
    assert same(model, whole(data)) and len(workers.started) == 2 and len(model.state.history) == 4


def test_a_fit_that_diverges_leaves_the_users_of_the_last_good_epoch_with_the_workers(workers, data):
    wild = {"learning_rate": 0.6, "regularization": 0.0, "rival_regularization": 0.0}
    wild |= {"advanced": {"schedule": "constant"}}
    one, model = (SAD(**{**LONGER, **wild}) for _ in range(2))
    with pytest.raises(DivergedError, match=r"diverged in epoch 3 .*lower learning_rate") as here:
        one.fit(Interactions.read(data, duplicates="last"), False)
    with pytest.raises(DivergedError) as there:
        model.fit(data, False, engine=Engine(workers=2))
    assert str(here.value) == str(there.value) and not workers.started[0].ended
    collect(model)
    assert same(model, one) and len(model.state.history) == 2


def test_users_that_are_lost_before_they_are_saved_are_named_and_the_workers_end(workers, data, tmp_path):
    model = SAD(**SMALL).fit(data, False, engine=Engine(workers=2))
    workers.lost.append("write_users")
    with pytest.raises(RuntimeError, match=r"what was learnt is gone with a worker .*same checkpoint="):
        model.save(tmp_path / "model")
    assert workers.started[0].ended and not (tmp_path / "model" / "model.json").exists()


def test_files_that_change_while_they_are_trained_on_are_refused(workers, data):
    def change(epoch, figures, model):
        written(data, table("text", seed=1))
        workers.lost += ["begin_epoch", "move_in"]

    with pytest.raises(ValueError, match="the files have changed since they were read: fit anew"):
        SAD(**LONGER).fit(data, False, engine=Engine(workers=2), callbacks=[change])


DEFAULTS = {"factors": 4, "iterations": 2, "blocks": 5}  # the rest is for the data to say


def test_weights_of_a_column_are_those_of_one_machine(workers, data):
    read = Interactions.read(data, duplicates="last")
    expected = SAD(**DEFAULTS).fit(read, False, weights=weights_in(data, "trust").matrix)
    here, there = (
        SAD(**DEFAULTS).fit(data, False, weights="trust", engine=engine)
        for engine in (None, Engine(workers=3, collect=True))
    )
    assert same(there, expected) and same(here, expected) and there.settings == expected.settings
    assert not same(there, SAD(**DEFAULTS).fit(read, False)) and (there.state.seen != expected.state.seen).nnz == 0


def said_of(read, count=300):
    """Return comparisons, with weights, of users and items that were read."""
    rng = np.random.default_rng(1)
    user, winner = (rng.integers(len(ids), size=count) for ids in (read.users, read.items))
    loser = (winner + rng.integers(1, len(read.items), count)) % len(read.items)
    columns = {"user": read.users[user], "winner": read.items[winner], "loser": read.items[loser]}
    return pl.DataFrame({**columns, "weight": rng.random(count)})


@pytest.mark.parametrize("loss", [None, "pairwise", "softmax"])
def test_comparisons_beside_files_are_learnt_as_on_one_machine(workers, data, tmp_path, loss):
    read = Interactions.read(data, duplicates="last")
    given = {"comparisons": Comparisons.from_frame(said_of(read)), "weights": "trust"}
    expected = SAD(**DEFAULTS, loss=loss).fit(data, False, **given)
    workers.lost.append("gather")
    folder = {"checkpoint": tmp_path / "checkpoint"}
    model = SAD(**DEFAULTS, loss=loss).fit(data, False, engine=Engine(workers=3, collect=True), **given, **folder)
    assert same(model, expected) and model.settings == expected.settings and len(workers.started) == 2
    assert not same(model, SAD(**DEFAULTS, loss=loss).fit(data, False, weights="trust"))
    given["comparisons"] = Comparisons.from_frame(said_of(read, 299))
    with pytest.raises(CheckpointError, match=r"belongs to another run .another files"):
        SAD(**DEFAULTS, loss=loss).fit(data, False, engine=Engine(workers=2), **given, **folder)


def test_a_file_of_comparisons_is_read_here(workers, data, tmp_path):
    said_of(Interactions.read(data, duplicates="last")).write_parquet(tmp_path / "said.parquet")
    models = (SAD(**SMALL).fit(tmp_path / "said.parquet", False, engine=one) for one in (None, Engine(workers=2)))
    assert same(*models) and len(workers.started) == 1


def test_comparisons_of_what_the_files_do_not_hold_are_refused(workers, data):
    read = Interactions.read(data, duplicates="last")
    frame = said_of(read)
    for column, what in (("user", "user"), ("loser", "item")):
        names = frame[column].to_list()
        stranger = Comparisons.from_frame(frame.with_columns(pl.Series(column, ["nobody", *names[1:]])))
        with pytest.raises(ValueError, match=rf"the {what} 'nobody' of the comparisons is not in the files \(1 such"):
            SAD(**SMALL).fit(data, False, engine=Engine(workers=2), comparisons=stranger)
    numbers = Comparisons.from_frame(frame.with_columns(user=pl.Series(range(len(frame)))))
    with pytest.raises(TypeError, match="ids of two kinds meet"):
        SAD(**SMALL).fit(data, False, engine=Engine(workers=2), comparisons=numbers)
    assert all(started.ended for started in workers.started)


REFUSED = [
    ({}, {"weights": [1]}, r"weights needs the data in this process: read the files first \(Interactions.read\)"),
    ({}, {"dislikes": 3}, "dislikes needs the data in this process"),
    ({"order_share": 0.5}, {}, r"order_share=0.5 needs all interactions in one place: leave it out"),
    ({}, {"warm_start": True}, "warm_start needs the data in this process"),
]


@pytest.mark.parametrize(("settings", "given", "said"), REFUSED)
def test_what_files_are_refused_with_is_taken_with_data_that_was_read(workers, data, settings, given, said):
    options, read = {**SMALL, **settings}, Interactions.read(data, duplicates="last")
    if "warm_start" in given:
        given = {"warm_start": SAD(**SMALL).fit(read, False)}
    if "weights" in given:
        given = {"weights": np.linspace(0, 2, len(read)).astype(np.float32)}
    with pytest.raises(ValueError, match=said):
        SAD(**options).fit(data, False, engine=Engine(workers=2), **given)
    assert all(started.ended for started in workers.started)
    assert same(*(SAD(**options).fit(read, False, engine=engine, **given) for engine in (None, Engine(workers=2))))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"validation": "read"}, "validation and patience need all parameters in one place after every epoch"),
        ({"item_features": "items"}, "item_features and user_features need all parameters in one place"),
        ({"user_features": "users"}, "item_features and user_features need all parameters in one place"),
        ({"blocks": 1}, "workers=2 is more than blocks=1"),
    ],
)
def test_what_only_this_process_does_is_refused_of_files_and_of_data(workers, data, given, said):
    read = Interactions.read(data, duplicates="last")
    tables = {
        f"{what}s": pl.DataFrame({what: ids, "x": np.arange(len(ids)) % 3.0})
        for what, ids in (("item", read.items), ("user", read.users))
    }
    more = {name: {**tables, "read": read}[value] for name, value in given.items() if name != "blocks"}
    settings = {**SMALL, **{name: value for name, value in given.items() if name == "blocks"}}
    for where in (data, read):
        with pytest.raises(ValueError, match=said):
            SAD(**settings).fit(where, False, engine=Engine(workers=2), **more)
    assert all(started.ended for started in workers.started)


def test_places_that_are_not_mounted_are_refused(workers, data):
    with pytest.raises(FileNotFoundError, match="there is no file or folder 's3:"):
        SAD(**SMALL).fit("s3://bucket/clicks.parquet", False, engine=Engine(workers=2))
    model = SAD(**SMALL).fit(data, False, engine=Engine(workers=2))
    with pytest.raises(ValueError, match="a model is saved to a folder that all nodes have mounted, not to 's3:"):
        model.save("s3://bucket/model/")


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
    weighed = SAD(factors=4, iterations=2, blocks=3).fit(data, False, weights="trust")
    for name, more in (("here.sad", []), ("there/", ["--engine", "ray"])):
        call = ["fit", *files, "-o", f"{tmp_path}/{name}", *options, "--weight", "trust", *more]
        assert CliRunner().invoke(main, call).exit_code == 0
        assert same(SAD.load(tmp_path / name), weighed) and not same(weighed, expected)
    answer = CliRunner().invoke(main, ["fit", *files, "-o", f"{tmp_path}/model/", *options])
    assert answer.exit_code == 2 and "a model is one only where workers read Parquet" in answer.output


def test_an_item_with_nearly_all_rows_leaves_workers_without_items(workers, tmp_path):
    rng = np.random.default_rng(0)
    item = np.where(rng.random(900) < 0.95, 7, rng.integers(20, size=900))
    user = np.where(rng.random(900) < 0.9, rng.integers(3, size=900), rng.integers(40, size=900))
    names = {"user": [f"u{n}" for n in user.tolist()], "item": [f"i{n}" for n in item.tolist()]}
    pl.DataFrame({**names, "timestamp": np.arange(900)}).write_parquet(tmp_path / "a.parquet")
    model = SAD(**SMALL).fit(tmp_path / "a.parquet", False, engine=Engine(workers=3))
    bounds = model.state.away.settled.bounds[1]
    assert (np.diff(bounds) == 0).any()
    model.save(tmp_path / "model")
    expected = SAD(**SMALL).fit(Interactions.read(tmp_path / "a.parquet", duplicates="last"), False)
    assert same(SAD.load(tmp_path / "model"), expected)
