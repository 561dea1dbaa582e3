"""What the engine refuses, in words, before any cluster is asked."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray
from tests.cluster.scenes import SMALL


@pytest.mark.parametrize("name", ["workers", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "two"])
def test_numbers_of_workers_and_threads_are_whole(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
        Ray(**{name: value})


def test_outputs_that_are_not_mounted_are_refused():
    with pytest.raises(ValueError, match=r"output must be a file that this system has mounted, not 's3://b/m.sad'"):
        Ray(output="s3://b/m.sad")


@pytest.mark.parametrize("kind", ["matrix", "Interactions", "Comparisons", "csv"])
def test_data_that_no_worker_can_read_is_refused_and_leaves_the_model_as_it_was(tmp_path, kind):
    clicks = np.random.default_rng(0).random((20, 30)) < 0.4
    model = SAD(**SMALL).fit(clicks, False)
    before = model.user_factors.copy()
    (tmp_path / "clicks.csv").write_text("user,item\n1,2\n")
    data = {"matrix": clicks, "Interactions": Interactions.from_csr(clicks), "csv": tmp_path / "clicks.csv"}
    data["Comparisons"] = Comparisons.from_indices([0], [0], [1], users=["a"], items=["b", "c"])
    with pytest.raises(ValueError, match=r"interactions in Parquet.*write the data to a folder .*or leave engine out"):
        model.fit(data[kind], False, engine=Ray())
    assert np.array_equal(model.user_factors, before)


def test_only_what_is_gone_is_tried_again():
    errors = pytest.importorskip("ray").exceptions
    from sadrec.cluster.actors import Lost, cause_of

    losses = errors.ActorDiedError(), errors.NodeDiedError("gone"), errors.WorkerCrashedError()
    for error in (*losses, errors.ObjectLostError("00" * 28, None, "")):
        assert isinstance(cause_of(error), Lost)
    for error in (errors.RayActorError(actor_init_failed=True), KeyError("a mistake of ours")):
        assert cause_of(error) is error


def test_the_command_line_takes_an_engine(tmp_path):
    pl.DataFrame({"user": range(40), "item": [n % 7 for n in range(40)]}).write_parquet(tmp_path / "clicks.parquet")
    (tmp_path / "clicks.csv").write_text("user,item\n1,2\n1,3\n")
    fit = ["fit", str(tmp_path / "clicks.parquet"), "-o", str(tmp_path / "m.sad"), "--blocks", "2"]
    answer = CliRunner().invoke(main, [*fit, "--workers", "3"])
    assert answer.exit_code == 2 and "--workers goes with --engine ray" in answer.output
    answer = CliRunner().invoke(main, [*fit, "--engine", "ray", "--validation", "0.1"])
    assert answer.exit_code == 2 and "--validation does not go with --engine" in answer.output
    answer = CliRunner().invoke(main, ["fit", str(tmp_path / "clicks.csv"), *fit[2:], "--engine", "ray"])
    assert answer.exit_code == 2 and "is not Parquet with interactions" in " ".join(answer.output.split())
