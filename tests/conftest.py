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


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A job in the background of a shell inherits that Ctrl-C is ignored; the tests of it must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
