"""How much memory reading a file of interactions takes, over the arrays it leaves behind.

    python benchmarks/data_memory.py --rows 10000000 --format parquet --format csv

Writes a file of random rows (users and items with ids spread over 64 bits, or short text with --text-ids), reads it
in a fresh process and prints the growth of its peak resident memory over the bytes kept. The bar is 4. Linux only.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from peak import grown, measure_from

USERS, ITEMS, PART = 480_000, 17_770, 5_000_000


def write(path: Path, rows: int, *, text_ids: bool, timestamps: bool) -> None:
    """Write ``rows`` random rows in parts, without holding them all."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer, text = None, None
    for start in range(0, rows, PART):
        count = min(PART, rows - start)
        # Squaring makes some users and items far more active than others, as everywhere.
        users = (rng.random(count) ** 2 * USERS).astype(np.int64) * 2_654_435_761
        items = (rng.random(count) ** 2 * ITEMS).astype(np.int64) * 40_503
        columns = {"user": users, "item": items, "rating": rng.integers(1, 11, count) / 2}
        if timestamps:
            columns["timestamp"] = rng.integers(10**9, 2 * 10**9, count)
        frame = pl.DataFrame(columns)
        if text_ids:
            frame = frame.with_columns(
                pl.format("user-{}", "user").alias("user"), pl.format("item-{}", "item").alias("item")
            )
        if path.suffix == ".parquet":
            table = frame.to_arrow()
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=2**20)
        else:
            text = text or path.open("wb")
            frame.write_csv(text, include_header=start == 0)
    for file in (writer, text):
        if file is not None:
            file.close()


def packed(path: Path) -> Path:
    """Compress a file with zstd and remove it."""
    from sadrec.data._text import zstd

    new = path.with_name(path.name + ".zst")
    with path.open("rb") as plain, zstd.open(new, "wb") as file:
        shutil.copyfileobj(plain, file, PART)
    path.unlink()
    return new


def read(path: Path) -> dict[str, float]:
    """Read a file and measure; meant for a fresh process."""
    from sadrec.data import Interactions

    tiny = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1.0, 2.0], "timestamp": [1, 2]})
    Interactions.from_frame(tiny)
    before, began = measure_from(), time.perf_counter()
    data = Interactions.read(path, duplicates="last")
    seconds = time.perf_counter() - began
    peak = grown(before)
    matrix = data.matrix
    arrays = [matrix.data, matrix.indices, matrix.indptr, data.users, data.items, data.timestamps]
    kept = sum(array.nbytes for array in arrays if array is not None)
    return {
        "entries": len(data),
        "kept_bytes": kept,
        "peak_growth_bytes": peak,
        "ratio": peak / kept,
        "seconds": seconds,
    }


def main() -> None:
    """Write the files, read each in a process of its own, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--format", action="append", choices=["parquet", "csv", "csv.gz", "csv.zst"], default=None)
    parser.add_argument("--text-ids", action="store_true")
    parser.add_argument("--timestamps", action="store_true")
    parser.add_argument("--folder", type=Path, default=None, help="where to write (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind in options.format or ["parquet", "csv"]:
            path = Path(folder) / f"rows.{kind.removesuffix('.gz').removesuffix('.zst')}"
            write(path, options.rows, text_ids=options.text_ids, timestamps=options.timestamps)
            if kind.endswith(".gz"):
                subprocess.run(["gzip", "-1", path], check=True)
                path = path.with_name(path.name + ".gz")
            if kind.endswith(".zst"):
                path = packed(path)
            command = [sys.executable, __file__, "--read", str(path)]
            measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            measured = {"format": kind, "rows": options.rows, **measured}
            if options.json:
                print(json.dumps(measured))
            else:
                print(
                    f"{kind:<8} {options.rows:>12,} rows: kept {measured['kept_bytes'] / 1e6:,.0f} MB, peak "
                    f"{measured['ratio']:.2f} times that, {measured['seconds']:.1f} s"
                )
            path.unlink()


if __name__ == "__main__":
    main()
