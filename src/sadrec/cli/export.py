"""``sadrec export``: the vectors of a model for a vector index or a data base."""

from pathlib import Path
from typing import Any

import click

from sadrec.cli.ask import load
from sadrec.cli.options import an_output, json_option, model_argument
from sadrec.cli.output import check_place_of_table, print_json


@click.command("export")
@model_argument
@click.option("--vectors", type=an_output, required=True, help="Parquet file to write: kind, id, vector.")
@click.option("--only", type=click.Choice(["items", "users"]), help="Leave out the other side.")
@json_option
def export_command(model: Path, vectors: Path, only: str | None, as_json: bool) -> None:
    """Write vectors of items and users for a vector index.

    The inner product of a user's and an item's vector is the item's mean margin: its order is that of `sadrec
    recommend --keep-seen`. The table has a row per item and user: ``kind`` ("item" or "user"), ``id`` (as text) and
    ``vector``. See docs/serving.md for pgvector, Qdrant and FAISS.
    """
    if vectors.suffix not in (".parquet", ".pq"):
        raise click.UsageError(f"vectors are written as parquet: name the file {vectors.with_suffix('.parquet')}")
    check_place_of_table(vectors, ("kind", "id", "vector"))
    fitted = load(model)
    sides = {"items": ("item", fitted.items, fitted.item_vectors), "users": ("user", fitted.users, fitted.user_vectors)}
    chosen = [side for name, side in sides.items() if only in (None, name)]
    rows, size = write_vectors(vectors, chosen)
    if as_json:
        print_json({"output": str(vectors), "rows": rows, "factors": size})
    else:
        click.echo(f"{rows:,} vectors of {size} numbers written to {vectors}")


def write_vectors(path: Path, sides: list[tuple[str, Any, Any]]) -> tuple[int, int]:
    """Write vectors as a parquet file, whole or not at all; return their number and length."""
    import numpy as np
    import polars as pl

    from sadrec._core.files import write_frame

    frames = []
    for kind, ids, compute in sides:
        vectors = np.ascontiguousarray(compute(), np.float32)
        columns = {
            "kind": pl.Series([kind]).extend_constant(kind, len(ids) - 1)
            if len(ids)
            else pl.Series([], dtype=pl.String),
            "id": pl.Series(ids.astype(str), dtype=pl.String),
            "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, vectors.shape[1])).cast(pl.List(pl.Float32)),
        }
        frames.append(pl.DataFrame(columns))
    table = pl.concat(frames)
    write_frame(path, table)
    return len(table), vectors.shape[1]
