"""What is said when a toolkit is missing, or of a version that was not tested."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from sadrec.integrations import _common


@pytest.mark.parametrize("version", ["2.9.9", "4.0", "4.0.0rc1", "5"])
def test_a_version_that_was_not_tested_is_named(monkeypatch, version):
    monkeypatch.setattr(_common, "version", lambda package: version)
    expected = (
        f"Tool {version} is installed, and this integration was tested with Tool 3.0 or newer, below 4: pip install"
    )
    with pytest.raises(ImportError, match=re.escape(expected)) as error:
        _common.require("Tool", "tool", "3.0", "4")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("version", ["3.0", "3.0.0", "3.0.1", "3.99.2.dev4"])
def test_a_version_that_was_tested_is_taken(monkeypatch, version):
    monkeypatch.setattr(_common, "version", lambda package: version)
    _common.require("Tool", "tool", "3.0", "4")


@pytest.mark.parametrize("toolkit", ["cornac", "rectools", "lenskit"])
def test_a_missing_toolkit_is_named_in_one_line(toolkit):
    if find_spec(toolkit) is not None:
        pytest.skip(f"{toolkit} is installed")
    expected = rf"this integration needs .* or newer, below .*: pip install '{toolkit}>=.*'"
    with pytest.raises(ImportError) as error:
        import_module(f"sadrec.integrations.{toolkit}")
    assert re.fullmatch(expected, str(error.value))


def test_nothing_of_a_toolkit_is_loaded_before_it_is_asked_for():
    code = (
        "import sadrec.integrations, sys; print({'cornac', 'rectools', 'lenskit', 'sklearn', 'numba'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_a_model_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="model must be 'SAD', 'BPR' or 'GibbsSAD', not 'ALS'"):
        _common.made("ALS", {})
    assert _common.made("GibbsSAD", {"draws": 7}).draws == 7
