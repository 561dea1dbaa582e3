"""The examples of docs/integrations.md run, each where its toolkit is."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
BLOCKS = re.findall(r"```(?:python|py)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
TOOLKITS = ("cornac", "rectools", "lenskit", "sklearn")


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_the_example_runs(toolkit):
    own = [block for block in BLOCKS if f"sadrec.integrations.{toolkit}" in block]
    assert len(own) == 1
    if find_spec(toolkit) is None:
        pytest.skip(f"{toolkit} is in an environment of its own (make test-integrations)")
    exec(compile(own[0], f"{PAGE.name}: {toolkit}", "exec"), {})
