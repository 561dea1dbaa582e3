"""The recipe for pgvector, as the page has it, in a real PostgreSQL; FAISS and Qdrant run with the page itself."""

import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from sadrec import SAD
from sadrec.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    pgserver = pytest.importorskip("pgserver", reason="the recipe for pgvector needs `pip install pgserver psycopg`")
    psycopg = pytest.importorskip("psycopg", reason="the recipe for pgvector needs `pip install pgserver psycopg`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")  # on a socket, not a port
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        yield connection
    server.cleanup()


def test_pgvector_finds_what_recommend_finds(connection, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"item {number}" for number in range(300)]
    sides = (np.abs(rng.normal(size=(rows, 5))) for rows in (4, 300, 300))
    model = SAD.from_factors(*sides, rng.random(300), items=names)
    model.save(tmp_path / "model.sad")
    arguments = ["export", str(tmp_path / "model.sad"), "--vectors", str(tmp_path / "vectors.parquet")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    table = pl.read_parquet(tmp_path / "vectors.parquet")
    page = PAGE.read_text()
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (code,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    extension, create, copy, index, select = statements.strip().splitlines()
    assert copy.removesuffix(";") in code and "vector(6)" in create
    connection.execute(extension)
    connection.execute(create)
    rows, person = table.filter(kind="item"), table.filter(kind="user", id="2")["vector"][0].to_list()
    namespace = {"connection": connection, "rows": rows, "person": person, "SELECT": select}
    exec(code, namespace)
    exact = namespace["found"]
    connection.execute(index)
    connection.execute("SET enable_seqscan = off")
    exec(code.split("copy.write_row")[1].split("\n", 1)[1], namespace)
    ids, scores = model.recommend(2, N=10, filter_already_liked_items=False)
    for listed in (exact, namespace["found"]):
        assert [one for one, _ in listed] == ids.tolist()
        np.testing.assert_allclose([score for _, score in listed], scores, rtol=1e-4)
    plan = connection.execute("EXPLAIN " + select, (str(person), str(person))).fetchall()
    assert any("Index Scan" in line for (line,) in plan)
