"""Machine code on disk is used again only while the sources it was made from are the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numba.core.caching import IndexDataCacheFile

import sadrec
from sadrec import _kernel
from sadrec._kernel import CheckedFiles


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


def call(folder: Path) -> str:
    """Run g of outer.py, which calls f of inner.py, in a process of its own, with the cache beside the sources."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from sadrec import _kernel; _kernel._PACKAGE = Path(sys.argv[1])\n"
        "from sadrec_outer import g; print(g(1))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sadrec.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_no_stale_kernel_after_a_callee_changed(tmp_path):
    # The folder stands for the package: the import that is never run says where the callee would be in it.
    outer = (
        "from sadrec._kernel import kernel\nfrom sadrec_inner import f\n"
        "if False:\n    from sadrec.sadrec_inner import f\n"
        "@kernel\ndef g(x):\n    return f(x)\n"
    )
    inner = "from sadrec._kernel import kernel\n@kernel\ndef f(x):\n    return x + {}\n"
    (tmp_path / "sadrec_outer.py").write_text(outer)
    (tmp_path / "sadrec_inner.py").write_text(inner.format(1))
    assert call(tmp_path) == "2"
    (tmp_path / "sadrec_inner.py").write_text(inner.format(5))
    assert call(tmp_path) == "6"


def test_a_damaged_cache_file_is_made_again(tmp_path):
    (tmp_path / "sadrec_inner.py").write_text("")
    (tmp_path / "sadrec_outer.py").write_text(
        "from sadrec._kernel import kernel\n@kernel\ndef g(x):\n    return x + 2\n"
    )
    assert call(tmp_path) == "3"
    files = [path for path in (tmp_path / "__pycache__").iterdir() if path.suffix in (".nbi", ".nbc")]
    assert len(files) == 2
    for path in files:
        path.write_bytes(path.read_bytes()[:20])
    assert call(tmp_path) == "3"


def test_no_flipped_bit_of_compiled_code_is_executed(tmp_path):
    files = CheckedFiles(str(tmp_path), "kernel", "sources")
    code = bytes(range(256)) * 4
    files.save("one", ("machine code", code))
    files.save("two", ("machine code", code[::-1]))
    assert files.load("one") == ("machine code", code) and files.load("three") is None
    rng = np.random.default_rng(0)
    for path in sorted(tmp_path.iterdir()):
        good = path.read_bytes()
        for _ in range(150):
            bad = bytearray(good)
            bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(bad)
            try:
                found = files.load("one")
            except ValueError:
                found = None
            assert found in (None, ("machine code", code))
        path.write_bytes(good)


def test_a_cache_of_before_is_not_read(tmp_path):
    before = IndexDataCacheFile(str(tmp_path), "kernel", "sources")
    before.save("one", "machine code")
    files = CheckedFiles(str(tmp_path), "kernel", "sources")
    assert files.load("one") is None
    files.save("one", "other code")
    assert files.load("one") == "other code"


def test_kernels_work_where_nothing_can_be_written(tmp_path, monkeypatch, caplog):
    def nowhere(*arguments):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(_kernel, "_Cache", nowhere)
    _kernel._say_once.cache_clear()
    assert _kernel.kernel(lambda x: x + 1)(1) == 2
    assert "compiled anew" in caplog.text


SUMS = """
from sadrec._kernel import kernel

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
    environment = {**os.environ, "PYTHONPATH": str(Path(sadrec.__file__).parents[1])}
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
