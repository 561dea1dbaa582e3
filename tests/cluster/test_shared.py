"""A whole fit on files with workers in this process: what the program does with what they hold."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray, shared
from sadrec.data import DataWarning, with_weights
from sadrec.models import CheckpointError, DivergedError
from tests.cluster.local import Engine, take_the_place_of_actors
from tests.cluster.scenes import LONGER, SMALL, compared, same
from tests.cluster.scenes import table as scene
from tests.cluster.test_shuffle import table, written

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


def test_a_fit_comes_here_or_is_written_to_a_file_and_the_workers_end(workers, data, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "_PIECE", 200)
    expected, output = whole(data), tmp_path / "model.sad"
    with pytest.warns(UserWarning, match="rows repeat a .user, item. pair: kept the latest of each"):
        here = SAD(**LONGER).fit(data, False, engine=Engine(workers=3))
    there = SAD(**LONGER).fit(f"{data}/part-*.parquet", False, engine=Engine(workers=2, output=output))
    assert all(started.ended for started in workers.started)
    for model in (here, there, SAD.load(output)):
        assert same(model, expected) and (model.state.seen != expected.state.seen).nnz == 0
        assert len(model.state.history) == 4 and model.settings == expected.settings
        assert model.recommend(model.users[3])[0].tolist() == expected.recommend(model.users[3])[0].tolist()
    assert isinstance(there.user_factors.base, np.memmap) and there.state.file[0] == output
    here.save(tmp_path / "saved.sad")
    assert SAD.load(tmp_path / "saved.sad").get_params() == SAD.load(output).get_params()


@pytest.mark.parametrize(
    "method", ["read", "merge_ids", "receive_rows", "assign", "survey", "balance_scale", "begin", "draw_first"]
)
def test_what_is_lost_while_files_are_read_is_read_again(workers, data, method, caplog):
    settings = {"factors": 4, "iterations": 2, "blocks": 5, "advanced": {"user_balance": 0.3}}
    expected = SAD(**settings).fit(Interactions.read(data, duplicates="last"), False)
    workers.lost.append(method)
    model = SAD(**settings).fit(data, False, engine=Engine(workers=2))
    assert same(model, expected) and len(workers.started) == 2 and len(caplog.records) == 1


@pytest.mark.parametrize("method", ["items", "ids", "users", "items_of_interactions"])
@pytest.mark.parametrize("written", [False, True])
def test_what_is_lost_while_the_fit_brings_it_here_is_learnt_again(workers, data, method, written, tmp_path):
    def lose(*given):
        if given[0] == LONGER["iterations"] and len(workers.started) == 1:
            workers.lost.append(method)

    engine = Engine(workers=2, output=tmp_path / "model.sad" if written else None)
    model = SAD(**LONGER).fit(data, False, engine=engine, callbacks=[lose])
    assert same(model, whole(data)) and len(workers.started) == 2 and len(model.state.history) == 4
    assert [path.name for path in tmp_path.glob("*model*")] == ["model.sad"] * written


def test_a_fit_that_diverges_leaves_the_last_good_epoch(workers, data, tmp_path):
    wild = {"learning_rate": 0.6, "regularization": 0.0, "rival_regularization": 0.0}
    wild |= {"advanced": {"schedule": "constant"}}
    one, model = (SAD(**{**LONGER, **wild}) for _ in range(2))
    with pytest.raises(DivergedError, match=r"diverged in epoch 3 .*lower learning_rate") as here:
        one.fit(Interactions.read(data, duplicates="last"), False)
    with pytest.raises(DivergedError) as there:
        model.fit(data, False, engine=Engine(workers=2, output=tmp_path / "model.sad"))
    assert str(here.value) == str(there.value) and workers.started[0].ended
    assert same(model, one) and len(model.state.history) == 2 and same(SAD.load(tmp_path / "model.sad"), one)


def test_files_that_change_while_they_are_trained_on_are_refused(workers, data):
    def change(epoch, figures, model):
        written(data, table("text", seed=1))
        workers.lost += ["begin_epoch", "assign"]

    with pytest.raises(ValueError, match="the files have changed since they were read: fit again"):
        SAD(**LONGER).fit(data, False, engine=Engine(workers=2), callbacks=[change])


DEFAULTS = {"factors": 4, "iterations": 2, "blocks": 5}  # the rest is for the data to say


def test_weights_of_a_column_are_those_of_one_machine(workers, data):
    read = Interactions.read(data, duplicates="last")
    expected = SAD(**DEFAULTS).fit(read, False, weights=with_weights(data, "trust")[1].matrix)
    here, there = (
        SAD(**DEFAULTS).fit(data, False, weights="trust", engine=engine) for engine in (None, Engine(workers=3))
    )
    assert same(there, expected) and same(here, expected) and there.settings == expected.settings
    assert not same(there, SAD(**DEFAULTS).fit(read, False)) and (there.state.seen != expected.state.seen).nnz == 0


@pytest.mark.parametrize("loss", [None, "pairwise", "softmax"])
def test_comparisons_beside_files_are_learnt_as_on_one_machine(workers, data, tmp_path, loss):
    read = Interactions.read(data, duplicates="last")
    given = {"comparisons": Comparisons.from_frame(compared(read)), "weights": "trust"}
    expected = SAD(**DEFAULTS, loss=loss).fit(data, False, **given)
    workers.lost.append("gather")
    folder = {"checkpoint": tmp_path / "checkpoint"}
    model = SAD(**DEFAULTS, loss=loss).fit(data, False, engine=Engine(workers=3), **given, **folder)
    assert same(model, expected) and model.settings == expected.settings and len(workers.started) == 2
    assert not same(model, SAD(**DEFAULTS, loss=loss).fit(data, False, weights="trust"))
    given["comparisons"] = Comparisons.from_frame(compared(read, 299))
    with pytest.raises(CheckpointError, match=r"belongs to another run .another files"):
        SAD(**DEFAULTS, loss=loss).fit(data, False, engine=Engine(workers=2), **given, **folder)


def test_a_comparison_counts_by_its_weight_where_settings_follow_the_size(workers, tmp_path):
    data = written(tmp_path, scene())
    read = Interactions.read(data, duplicates="last")
    given = {"comparisons": Comparisons.from_frame(compared(read).with_columns(weight=pl.lit(0.3)))}
    here, there = (SAD(**SMALL).fit(data, False, engine=engine, **given) for engine in (None, Engine(workers=2)))
    assert same(here, there) and here.settings.negative_candidates == there.settings.negative_candidates == 1


def test_comparisons_of_what_the_files_do_not_hold_are_refused(workers, data):
    read = Interactions.read(data, duplicates="last")
    frame = compared(read)
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
    ({}, {"weights": [1]}, r"weights needs all data in one process: leave weights out .weights may be the name of a c"),
    ({}, {"dislikes": 3}, "dislikes needs all data in one process: leave dislikes out, or leave engine out"),
    ({"order_share": 0.5}, {}, r"order_share=0.5 needs all interactions in one process: leave order_share out"),
    ({}, {"warm_start": SAD.from_factors([[1.0]], [[1.0], [2.0]])}, "warm_start needs all data in one process"),
    ({}, {"validation": np.eye(3)}, "validation and patience need all parameters in one place after every epoch"),
    ({}, {"item_features": np.eye(3)}, "item_features and user_features need all parameters in one place"),
    ({}, {"user_features": np.eye(3)}, "item_features and user_features need all parameters in one place"),
    ({"blocks": 1}, {}, "workers=2 is more than blocks=1.*lower workers or raise blocks"),
]


@pytest.mark.parametrize(("settings", "given", "message"), REFUSED)
def test_what_workers_cannot_do_is_refused_in_words(workers, data, settings, given, message):
    with pytest.raises(ValueError, match=message):
        SAD(**{**SMALL, **settings}).fit(data, False, engine=Engine(workers=2), **given)
    assert all(started.ended for started in workers.started)


def test_places_that_are_not_mounted_are_refused(workers, data):
    with pytest.raises(FileNotFoundError, match="there is no file or folder 's3:"):
        SAD(**SMALL).fit("s3://bucket/clicks.parquet", False, engine=Engine(workers=2))


def test_a_fit_that_learns_nothing_warns_and_the_command_writes_no_model(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(Ray, "_connect", lambda engine: False)
    pl.DataFrame({"user": [0] * 4 + [1] * 4, "item": [0, 1, 2, 3] * 2}).write_parquet(tmp_path / "all.parquet")
    with pytest.warns(DataWarning, match="nothing was learnt"):
        SAD(blocks=2).fit(tmp_path / "all.parquet", False, engine=Engine(workers=2))
    call = ["fit", f"{tmp_path}/all.parquet", "-o", f"{tmp_path}/m.sad", "--blocks", "2", "--engine", "ray", "--quiet"]
    answer = CliRunner().invoke(main, call)
    assert answer.exit_code == 1 and "no model is written" in answer.output
    assert not (tmp_path / "m.sad").exists()


def test_the_command_line_fits_several_files_here_and_on_workers(workers, data, tmp_path, monkeypatch):
    monkeypatch.setattr(Ray, "_connect", lambda engine: False)
    files = sorted(map(str, data.glob("*.parquet")))
    options = ["--factors", "4", "--iterations", "2", "--blocks", "3", "--quiet"]
    expected = SAD(factors=4, iterations=2, blocks=3).fit(Interactions.read(data, duplicates="last"), False)
    for name, given in (("several", files), ("folder", [str(data)])):
        answer = CliRunner().invoke(main, ["fit", *given, "-o", f"{tmp_path}/{name}.sad", *options])
        assert answer.exit_code == 0, answer.output
        assert same(SAD.load(tmp_path / f"{name}.sad"), expected) and not workers.started
    engine = ["--engine", "ray"]
    answer = CliRunner().invoke(main, ["fit", *files, "-o", f"{tmp_path}/model.sad", *options, *engine])
    assert answer.exit_code == 0, answer.output
    assert same(SAD.load(tmp_path / "model.sad"), expected)
    assert len(workers.started) == 1 and workers.started[0].ended
    weighed = SAD(factors=4, iterations=2, blocks=3).fit(data, False, weights="trust")
    for name, place in (("here.sad", []), ("there.sad", engine)):
        call = ["fit", *files, "-o", f"{tmp_path}/{name}", *options, "--weight", "trust", *place]
        assert CliRunner().invoke(main, call).exit_code == 0
        assert same(SAD.load(tmp_path / name), weighed) and not same(weighed, expected)
    answer = CliRunner().invoke(main, ["fit", *files, "-o", f"{tmp_path}/", *options, *engine])
    assert answer.exit_code == 2 and "is a folder: name the file to write" in answer.output


def test_an_item_with_nearly_all_rows_leaves_workers_without_items(workers, tmp_path):
    rng = np.random.default_rng(0)
    item = np.where(rng.random(900) < 0.95, 7, rng.integers(20, size=900))
    user = np.where(rng.random(900) < 0.9, rng.integers(3, size=900), rng.integers(40, size=900))
    names = {"user": [f"u{n}" for n in user.tolist()], "item": [f"i{n}" for n in item.tolist()]}
    pl.DataFrame({**names, "timestamp": np.arange(900)}).write_parquet(tmp_path / "a.parquet")
    model = SAD(**SMALL).fit(tmp_path / "a.parquet", False, engine=Engine(workers=3))
    assert any(len(worker.data.held.items) == 0 for worker in workers.started[0].workers)
    expected = SAD(**SMALL).fit(Interactions.read(tmp_path / "a.parquet", duplicates="last"), False)
    assert same(model, expected)
