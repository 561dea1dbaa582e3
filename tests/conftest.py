"""What all tests share: which of them `make test` runs, the folder of real data, and what workers do once for all.

No worker (``pytest -n 2``) compiles a kernel that another is at, and there is one cluster of Ray.
"""

import hashlib
import json
import os
import signal
from pathlib import Path

import filelock
import hypothesis
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from sadrec._core import kernel as _kernel

# A busy machine and a first compilation are no failures.
hypothesis.settings.register_profile("sadrec", deadline=None)
hypothesis.settings.load_profile("sadrec")

# What `make test` leaves to `make test-all`, by folder or file. The reasons are markers, described in pyproject.toml.
EXTRA = {
    "studies/": "study",
    "tests/campaigns/": "campaign",
    "tests/cluster/test_ray.py": "cluster",
    "tests/evaluation/test_baselines.py::TestImplicit": "tool",
    "tests/posterior/test_diagnostics.py": "tool",
    "tests/posterior/test_joint.py": "slow",
    "tests/ranking/test_vector_index.py": "tool",
    "tests/serving/test_explorer.py": "browser",
    "tests/serving/test_recipes.py": "tool",
    "tests/studies/": "study",
    "tests/test_site.py": "tool",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is not part of `make test`: by its place, because it needs real data, or because it says so itself."""
    for item in items:
        for place, reason in EXTRA.items():
            if item.nodeid.startswith(place):
                item.add_marker(reason)
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if any(item.get_closest_marker(reason) for reason in {*EXTRA.values(), "data", "slow"}):
            item.add_marker("extra")
    # A worker begins with the cluster, which waits most of its time, and the others steal the rest of its tests.
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


@pytest.fixture(scope="session", autouse=True)
def every_kernel_is_compiled_once(tmp_path_factory):
    """Have a worker that needs a kernel which another one compiles wait, and read it from the disk."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    locks, compile_alone = tmp_path_factory.getbasetemp().parent / "compiling", Dispatcher.compile
    cache = _kernel._Cache  # as it is before a test puts something in its place
    locks.mkdir(exist_ok=True)

    def compile_once(dispatcher, signature):
        if not isinstance(dispatcher._cache, cache):
            return compile_alone(dispatcher, signature)
        compiled = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__} {signature}"
        name = hashlib.blake2b(compiled.encode(), digest_size=16).hexdigest()
        # In this order: a thread that had the file's lock would wait for one that compiles and waits for that lock.
        with global_compiler_lock, filelock.FileLock(locks / name):
            return compile_alone(dispatcher, signature)

    Dispatcher.compile = compile_once
    yield
    Dispatcher.compile = compile_alone


@pytest.fixture(scope="session")
def once_for_all_workers(tmp_path_factory):
    """A function that calls another one in one worker, and gives all of them what it returns, by way of JSON."""

    def once(name, make):
        if "PYTEST_XDIST_WORKER" not in os.environ:
            return make()
        path = tmp_path_factory.getbasetemp().parent / f"{name}.json"
        with filelock.FileLock(path.with_suffix(".lock")):
            if not path.exists():
                path.write_text(json.dumps(make()))
            return json.loads(path.read_text())

    return once


@pytest.fixture(scope="session")
def data_folder():
    """The folder that SADREC_DATA names; tests that need it are skipped without."""
    folder = os.environ.get("SADREC_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set SADREC_DATA to the folder that holds it")
    return Path(folder)


@pytest.fixture
def interrupt_after():
    """A function that lets a run of the sampler end with an error in the middle."""
    from sadrec.posterior import sampling

    def patch_turns(monkeypatch, turns, error):
        real, done = sampling._turn, []

        def turn(*arguments):
            if len(done) == turns:
                raise error
            done.append(1)
            return real(*arguments)

        monkeypatch.setattr(sampling, "_turn", turn)
        monkeypatch.setattr(sampling, "_ROUND_SECONDS", 0.0)

    return patch_turns


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A job in the background of a shell inherits that Ctrl-C is ignored; the tests of it must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
