"""Full disks, files that may not be read, and files of another kind: one error in words, and nothing half-written."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons, Interactions
from sadrec._core.files import save_figure
from sadrec.cli import main
from sadrec.evaluation import Popularity, compare, tune
from sadrec.models import ModelFileError
from sadrec.posterior import GibbsSAD


@contextmanager
def full_after(size):
    """Let no file grow beyond a size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 9, 200)
    frame = pl.DataFrame({"user": rng.integers(0, 6, 200), "winner": winner, "loser": (winner + 1) % 9})
    return Comparisons.from_frame(frame)


@pytest.fixture(scope="module")
def model(pairs):
    return SAD(factors=2).fit(pairs, show_progress=False)


@pytest.fixture(scope="module")
def posterior(pairs):
    return GibbsSAD(factors=2, draws=20, warmup=2, chains=1).fit(pairs, show_progress=False)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def writers(model, pairs, posterior):
    """Return what writes a file or folder, by what it is."""
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots()
    quiet = {"show_progress": False}
    result = compare({"popularity": Popularity()}, pairs, 2, **quiet)
    search = {"metric": "accuracy", "space": [{}], "sampler": "grid", **quiet}
    return {
        "model": model.save,
        "posterior": posterior.save,
        "baseline": Popularity().fit(pairs).save,
        "figure": lambda path: save_figure(path, figure),
        "checkpoint": lambda path: SAD(factors=2).fit(pairs, checkpoint=path, **quiet),
        "draws": lambda path: GibbsSAD(factors=2, draws=20).fit(pairs, checkpoint=path, **quiet),
        "tables": lambda path: result.save(path, picture=False),
        "comparison": lambda path: compare({"p": Popularity()}, pairs, 2, path=path, **quiet),
        "trial": lambda path: tune(Popularity(), pairs, path=path, **search),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch, model, pairs):
    """Go to a folder with a table and a model."""
    pairs.to_frame().write_csv(tmp_path / "pairs.csv")
    model.save(tmp_path / "m.sad")
    monkeypatch.chdir(tmp_path)
    return tmp_path


KINDS = ["model", "posterior", "baseline", "figure", "checkpoint", "draws", "tables", "comparison", "trial"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_said_in_one_line_and_leaves_nothing_half_written(writers, tmp_path, kind):
    folder = tmp_path / "new"
    folder.mkdir()
    with full_after(64), pytest.raises(OSError, match=r"out.*' cannot be written: File too large") as raised:
        writers[kind](folder / "out")
    assert "\n" not in str(raised.value)
    assert {name for name, content in contents(folder).items() if content} <= {".lock-owner"}


@pytest.mark.parametrize("kind", ["model", "posterior", "baseline", "figure"])
def test_a_full_disk_leaves_the_file_that_was_there(writers, tmp_path, kind):
    path = tmp_path / "new" / "out"
    writers[kind](path)
    before = contents(path.parent)
    with full_after(64), pytest.raises(OSError, match="cannot be written"):
        writers[kind](path)
    assert contents(path.parent) == before


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "pairs.csv", "-o", "out"],
        ["posterior", "pairs.csv", "-o", "out.posterior", "--draws", "20"],
        ["recommend", "m.sad", "--all", "-o", "out.parquet"],
        ["cycles", "m.sad", "--user", "1", "--plot", "out.png"],
        ["compare", "pairs.csv", "-o", "out", "--models", "popularity"],
        ["tune", "pairs.csv", "-o", "out.json", "--sampler", "random", "--trials", "1"],
    ],
)
def test_commands_say_in_one_line_that_the_disk_is_full(folder, command):
    quiet = [] if command[0] in ("recommend", "cycles") else ["--quiet"]
    with full_after(64):
        result = CliRunner().invoke(main, [*command, *quiet])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: 'out") and "cannot be written: File too large" in result.stderr
    assert result.stderr.count("\n") == 1
    assert {name for name, content in contents(folder).items() if content} == {"m.sad", "pairs.csv"}


def test_a_full_disk_behind_the_answer_ends_the_command_with_an_error(folder):
    command = [sys.executable, "-m", "sadrec", "prefer", "m.sad", "--user", "1", "2", "3"]
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command, cwd=folder, env=os.environ, stdout=full, stderr=subprocess.PIPE, text=True)
    assert run.returncode != 0 and "Traceback" not in run.stderr and "No space left on device" in run.stderr


# -- files that cannot be read, or are something else ------------------------------------------------------------------


def test_a_model_that_may_not_be_read_is_not_called_missing_or_damaged(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m.sad")
    usual = os.open

    def refuse(path, *rest, **options):
        if Path(path).name == "m.sad":
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied.*m\.sad"):
        SAD.load(tmp_path / "m.sad")
    result = CliRunner().invoke(main, ["recommend", str(tmp_path / "m.sad"), "--user", "1"])
    assert result.exit_code == 1 and result.stderr == f"Error: {tmp_path / 'm.sad'}: Permission denied\n"


def test_a_damaged_model_is_named_once_and_called_damaged_once(model, tmp_path):
    path = tmp_path / "m.sad"
    model.save(path)
    whole = path.read_bytes()
    for content in (whole[:100], whole[:-1], whole[:-1] + b"?", b"user,item\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as raised:
            SAD.load(path)
        text = str(raised.value)
        assert (
            text.count(str(path)) == 1
            and text.replace(str(path), "").count("damaged") == 1
            and "or fetch it again" in text
        )


def test_files_of_another_kind_are_called_by_their_kind(model, pairs, posterior, tmp_path):
    model.save(tmp_path / "m.sad")
    posterior.save(tmp_path / "p.posterior")
    Popularity().fit(pairs).save(tmp_path / "b")
    with pytest.raises(ModelFileError, match=r"is not a sadrec model but a posterior of sadrec \(GibbsSAD\.load"):
        SAD.load(tmp_path / "p.posterior")
    with pytest.raises(ModelFileError, match=r"is not a sadrec posterior but a model of sadrec \(SAD\.load"):
        GibbsSAD.load(tmp_path / "m.sad")
    for name, words in (("m.sad", "a model of sadrec"), ("p.posterior", "a posterior of"), ("b", "a baseline of")):
        for kind in (Interactions, Comparisons):
            with pytest.raises(ValueError, match=f"{name}: it is not a table but {words}.*name the file of inter"):
                kind.read(tmp_path / name)
    for command in ("describe", "posterior"):
        result = CliRunner().invoke(main, [command, str(tmp_path / "m.sad")])
        assert result.exit_code == 1 and "m.sad: it is not a table but a model of sadrec" in result.stderr


@pytest.mark.parametrize("change", ["empty", "cut", "flipped", "longer", "other"])
def test_a_damaged_record_of_a_search_or_a_comparison_counts_as_not_there(pairs, tmp_path, caplog, change):
    def search():
        return tune(
            Popularity(), pairs, metric="accuracy", space=[{}], sampler="grid", path=tmp_path, show_progress=False
        ).score

    def comparison():
        return compare({"p": Popularity()}, pairs, 1, path=tmp_path, show_progress=False).summary()

    first = search(), comparison()
    records = [path for path in tmp_path.iterdir() if path.suffix in (".trial", ".comparison")]
    assert len(records) == 2
    for path in records:
        whole = path.read_bytes()
        changed = {
            "empty": b"", "cut": whole[:-7], "longer": whole + b"?", "other": b"PK\x03\x04",
            "flipped": whole[:90] + bytes([whole[90] ^ 4]) + whole[91:],
        }  # fmt: skip
        path.write_bytes(changed[change])
    again = search(), comparison()
    assert again[0] == first[0]
    assert again[1].drop("^.*seconds.*$").equals(first[1].drop("^.*seconds.*$"))
    assert caplog.text.count("computed again") == 2


def test_a_record_that_holds_something_else_counts_as_not_there(pairs, tmp_path, caplog):
    def search():
        return tune(
            Popularity(), pairs, metric="accuracy", space=[{}], sampler="grid", path=tmp_path, show_progress=False
        ).score

    from sadrec._core.record import Records

    score = search()
    (path,) = tmp_path.glob("*.trial")
    Records(tmp_path, "trial", {}).write(path.stem, {"scores": "many"})
    assert search() == score and "does not hold what it should" in caplog.text


@pytest.mark.parametrize("setting", ["learning_rate", "regularization", "order_share", "random_state"])
def test_whole_numbers_that_no_float_holds_are_refused_by_name(pairs, setting):
    with pytest.raises(ValueError, match=f"{setting} must be"):
        SAD(**{setting: 10**400}).fit(pairs, show_progress=False)
