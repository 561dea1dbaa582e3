"""What all tests share: the folder of real data, when there is one, and no limit on how long an example may take.

Also how several workers (``pytest -n 3``) share the time: which files come first, and that none compiles a kernel that
another is at.
"""

import hashlib
import os
import signal
from pathlib import Path

import filelock
import hypothesis
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from sadrec import _kernel

# A busy machine and a first compilation are no failures.
hypothesis.settings.register_profile("sadrec", deadline=None)
hypothesis.settings.load_profile("sadrec")

# Files of twenty seconds or more: begun last, they would end long after all others. Before the cluster, whose processes
# know no locks, come files that compile the kernels it needs.
LONG = (
    "tests/models/test_comparisons.py",
    "tests/cluster/test_conductor.py",
    "tests/posterior/test_conditionals.py",
    "tests/cluster/test_ray.py",
    "tests/models/test_quality.py",
    "tests/serving/test_run.py",
    "tests/campaigns/test_campaigns.py",
    "tests/serving/test_explorer.py",
    "tests/cli/test_commands.py",
    "tests/serving/test_schema.py",
    "tests/posterior/test_joint.py",
    "tests/studies/test_simulation_study.py",
    "tests/models/test_features.py",
    "tests/serving/test_extras.py",
    "tests/studies/test_comparisons_study.py",
    "tests/test_readme.py",
    "tests/training/test_softmax.py",
    "tests/studies/test_simulation_bars.py",
    "tests/test_typing.py",
)


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest; ``--no-loadscope-reorder`` has workers keep to it."""
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONG)))


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
        asked = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__} {signature}"
        name = hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()
        # In this order: a thread that had the file's lock would wait for one that compiles and waits for that lock.
        with global_compiler_lock, filelock.FileLock(locks / name):
            return compile_alone(dispatcher, signature)

    Dispatcher.compile = compile_once
    yield
    Dispatcher.compile = compile_alone


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
