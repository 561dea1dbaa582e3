"""What all tests share: the folder of real data, when there is one, and no limit on how long an example may take."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest

# A busy machine and a first compilation are no failures.
hypothesis.settings.register_profile("sadrec", deadline=None)
hypothesis.settings.load_profile("sadrec")


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
