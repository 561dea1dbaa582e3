"""Machine code on disk is used again only while the sources it was made from are the same."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sadrec
from sadrec._core import kernel as _kernel
from sadrec._core.kernel import CheckedFiles


def test_the_digest_follows_what_a_file_imports(tmp_path, monkeypatch):
    (tmp_path / "outer.py").write_text(
        "from sadrec.other import g\nfrom sadrec.inner import f\nfrom sadrec.third import h\n"
    )
    (tmp_path / "inner.py").write_text("from sadrec.other import (\n    g,\n)\nfrom sadrec import deepest\n")
    (tmp_path / "deepest.py").write_text("ONE = 1\n")
    monkeypatch.setattr(_kernel, "_PACKAGE", tmp_path)
    digests = []
    for one in ("1", "2"):
        (tmp_path / "deepest.py").write_text(f"ONE = {one}\n")
        _kernel.sources_digest.cache_clear()
        digests.append(_kernel.sources_digest(tmp_path / "outer.py"))
    _kernel.sources_digest.cache_clear()
    assert digests[0] != digests[1]


def call(folder: Path, **variables: str) -> str:
    """Run g of outer.py, which calls f of inner.py, in a process of its own; print g(1) and how often it compiled."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from sadrec._core import kernel as _kernel; _kernel._PACKAGE = Path(sys.argv[1])\n"
        "from sadrec_outer import g; print(g(1), sum(g.stats.cache_misses.values()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sadrec.__file__).parents[1]), **variables}
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


# The folder stands for the package: the import that is never run says where the callee would be in it.
OUTER = (
    "from sadrec._core.kernel import kernel\nfrom sadrec_inner import f\n"
    "if False:\n    from sadrec.sadrec_inner import f\n"
    "@kernel\ndef g(x):\n    return f(x)\n"
)
INNER = "from sadrec._core.kernel import kernel\n@kernel\ndef f(x):\n    return x + {}\n"


def clone(folder: Path, added: int) -> Path:
    folder.mkdir()
    (folder / "sadrec_outer.py").write_text(OUTER)
    (folder / "sadrec_inner.py").write_text(INNER.format(added))
    return folder


def test_clones_share_the_users_cache_and_different_sources_do_not_evict_each_other(tmp_path):
    user = {"XDG_CACHE_HOME": str(tmp_path / "user"), "NUMBA_CACHE_DIR": ""}
    first, other = clone(tmp_path / "first", 1), clone(tmp_path / "other", 5)
    assert call(first, **user) == "2 1"
    assert call(other, **user) == "6 1"
    assert call(clone(tmp_path / "second", 1), **user) == "2 0"
    assert call(first, **user) == "2 0" and call(other, **user) == "6 0"
    assert not list(tmp_path.glob("*/__pycache__/**/*.nb?"))


def test_numba_cache_dir_is_respected_and_what_is_beside_the_sources_is_the_last_resort(tmp_path):
    folder = clone(tmp_path / "clone", 1)
    chosen = tmp_path / "chosen"
    assert call(folder, NUMBA_CACHE_DIR=str(chosen)) == "2 1"
    assert len(list(chosen.rglob("*.nbc"))) == 2 and not list(folder.rglob("*.nbc"))
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    assert call(folder, NUMBA_CACHE_DIR=str(nowhere)) == "2 1"
    assert len(list(folder.rglob("*.nbc"))) == 2


def test_a_damaged_cache_file_is_made_again(tmp_path):
    folder, chosen = clone(tmp_path / "clone", 1), tmp_path / "chosen"
    assert call(folder, NUMBA_CACHE_DIR=str(chosen)) == "2 1"
    for path in chosen.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:20])
    assert call(folder, NUMBA_CACHE_DIR=str(chosen)) == "2 1"


def test_no_flipped_bit_of_compiled_code_is_executed(tmp_path):
    files = CheckedFiles(str(tmp_path), "kernel-sources")
    code = bytes(range(256)) * 4
    files.save("one", ("machine code", code))
    assert files.load("one") == ("machine code", code) and files.load("three") is None
    rng = np.random.default_rng(0)
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    for _ in range(150):
        bad = bytearray(good)
        bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="damaged"):
            files.load("one")


def test_only_what_was_not_used_for_thirty_days_is_removed(tmp_path):
    files = CheckedFiles(str(tmp_path), "kernel-sources")
    for key in ("used", "unused"):
        files.save(key, "machine code")
    for path in tmp_path.iterdir():
        os.utime(path, (0, time.time() - 31 * 24 * 3600))
    assert files.load("used") == "machine code"
    _kernel._remove_unused.cache_clear()
    files.save("new", "machine code")
    assert [files.load(key) for key in ("used", "unused", "new")] == ["machine code", None, "machine code"]


def test_kernels_work_where_nothing_can_be_written(tmp_path, monkeypatch, caplog):
    def nowhere(*arguments):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(_kernel, "_Cache", nowhere)
    _kernel._say_once.cache_clear()
    assert _kernel.kernel(lambda x: x + 1)(1) == 2
    assert "compiled again" in caplog.text


SUMS = """
from sadrec._core.kernel import kernel

@kernel
def inner(values, means, mean):
    total = 0.0
    for row in range(values.shape[0]):
        for h in range(values.shape[1]):
            away = values[row, h] - means[h] * mean
            total += away * away
    return total

@kernel
def outer(values, means, out):
    out[0] = inner(values, means, 1.0)
    out[1] = inner(values, means, out[0])
    out[2] = inner(values, means, out[1] * 1e-3)
"""
DIGEST = """
import hashlib, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import sadrec_sums
if sys.argv[2] == "inner first":
    sadrec_sums.inner(np.ones((3, 4)), np.ones(4), 1.0)
digest = hashlib.blake2b()
for size in range(1, 40):
    rng, out = np.random.default_rng(size), np.zeros(3)
    sadrec_sums.outer(rng.standard_normal((size, 1 + size % 7)), rng.standard_normal(1 + size % 7), out)
    digest.update(out.tobytes())
print(digest.hexdigest())
"""


def test_the_same_bits_just_compiled_and_from_the_disk_whatever_was_called_before(tmp_path):
    (tmp_path / "sadrec_sums.py").write_text(SUMS)
    ours = {"PYTHONPATH": str(Path(sadrec.__file__).parents[1]), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    environment = {**os.environ, **ours}
    digests = [
        subprocess.run(
            [sys.executable, "-c", DIGEST, str(tmp_path), before],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for before in ("nothing", "nothing", "inner first")
    ]
    assert digests[0] == digests[1] == digests[2]
