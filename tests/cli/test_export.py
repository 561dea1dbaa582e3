"""``sadrec export``: what is written ranks as the model does."""

import json

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
