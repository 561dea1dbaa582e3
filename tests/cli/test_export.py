"""``sadrec export``: what is written ranks as the model does."""

import json
import os
import resource
import signal
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main


def test_exported_vectors_rank_as_the_model_does(tmp_path):
    rng = np.random.default_rng(0)
    model = SAD.from_factors(
        rng.normal(size=(5, 3)),
        rng.normal(size=(20, 3)),
        rng.random((20, 3)),
        rng.normal(size=20),
        users=[f"u{n}" for n in range(5)],
    )
    model.save(tmp_path / "m.sad")
    path = tmp_path / "v.parquet"
    run = CliRunner().invoke(main, ["export", str(tmp_path / "m.sad"), "--vectors", str(path), "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output) == {"output": str(path), "rows": 25, "factors": 4}
    table = pl.read_parquet(path)
    items = table.filter(kind="item")
    user = np.array(table.filter(kind="user", id="u3")["vector"][0].to_list())
    scores = np.array(items["vector"].to_list()) @ user
    best = items["id"].to_numpy()[np.argsort(-scores)[:5]]
    assert best.tolist() == [str(item) for item in model.recommend("u3", N=5)[0]]


def test_one_side_and_what_is_wrong(tmp_path):
    SAD.from_factors(np.ones((2, 1)), np.ones((3, 1))).save(tmp_path / "m.sad")
    path = tmp_path / "v.parquet"
    run = CliRunner().invoke(main, ["export", str(tmp_path / "m.sad"), "--vectors", str(path), "--only", "users"])
    assert run.exit_code == 0 and pl.read_parquet(path)["kind"].to_list() == ["user", "user"]
    refused = CliRunner().invoke(main, ["export", str(tmp_path / "m.sad"), "--vectors", str(tmp_path / "v.csv")])
    assert refused.exit_code == 2 and "name the file" in refused.output and "v.parquet" in refused.output


def test_a_full_disk_is_said_in_words(tmp_path):
    SAD.from_factors(np.ones((50, 8)), np.ones((50, 8))).save(tmp_path / "m.sad")
    path = tmp_path / "v.parquet"
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        run = CliRunner().invoke(main, ["export", str(tmp_path / "m.sad"), "--vectors", str(path)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert run.exit_code == 1 and run.output == f"Error: '{path}' cannot be written: File too large\n"
    assert [file.name for file in tmp_path.iterdir()] == ["m.sad"]


def test_a_model_in_a_closed_folder_is_not_taken_for_one_that_is_not_there():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "closed" / "m.sad"
        path.parent.mkdir()
        SAD.from_factors(np.ones((2, 1)), np.ones((3, 1))).save(path)
        Path(folder).chmod(0o755)
        path.parent.chmod(0)
        before = os.geteuid()
        if before == 0:  # who may read everything
            os.seteuid(65534)
        try:
            run = CliRunner().invoke(main, ["export", str(path), "--vectors", f"{folder}/v.parquet"])
        finally:
            os.seteuid(before)
            path.parent.chmod(0o700)
    assert run.exit_code == 2 and f"'{path}' may not be read: a folder above it is closed" in run.output
