"""The tests of each toolkit pass in an environment of its own, with sadrec from this folder."""

import os
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("filelock")
ROOT = Path(__file__).parents[2]
TESTED = {"cornac": "cornac", "rectools": "rectools", "lenskit2025": "lenskit", "lenskit2026": "lenskit"}


@pytest.mark.baselines
@pytest.mark.parametrize("name", TESTED)
def test_a_toolkit_and_its_page(name):
    from studies.baselines import BaselineError, RegistryUnreachableError, install

    try:
        python = install(name)
    except RegistryUnreachableError as error:
        pytest.skip(f"needs the package registry to install {name}: {str(error).splitlines()[-1]}")
    except BaselineError as error:
        if "no such Python is on the PATH" not in str(error):
            raise
        pytest.skip(str(error))
    toolkit = TESTED[name]
    files = [f"tests/integrations/test_{toolkit}.py", "tests/integrations/test_page.py"]
    files.append(f"src/sadrec/integrations/{toolkit}.py")
    options = ["-o", "addopts=", "--import-mode=importlib", "--confcutdir=tests/integrations", "--doctest-modules"]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *files],
        cwd=ROOT,
        env={**os.environ, **one_thread, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) > 10
