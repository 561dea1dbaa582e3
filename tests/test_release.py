"""What a release needs agrees with itself."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import sadrec

ROOT = Path(__file__).parents[1]


def test_the_citation_is_of_this_version():
    assert f"version: {sadrec.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_workflows_and_templates_are_yaml_and_call_targets_that_are_there():
    yaml = pytest.importorskip("yaml")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    files = list((ROOT / ".github").rglob("*.yml"))
    assert len(files) == 5
    for file in files:
        content = yaml.safe_load(file.read_text())
        for job in content.get("jobs", {}).values():
            for step in job["steps"]:
                for line in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
                    assert set(line.split()) <= targets, f"{file.name}: make {line}"


def test_extras_that_others_name_are_there():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in re.findall(r"sadrec\[([a-z,]+)\]", str(extras)):
        assert set(name.split(",")) <= set(extras)


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    listed = set(re.findall(r"\.\. (?:auto\w+|py:data):: ([\w.]+)", pages))
    names = {name.rpartition(".")[2] for name in listed}
    for package in ("data", "features", "models", "evaluation", "posterior", "serving", "cluster"):
        missing = [name for name in import_module(f"sadrec.{package}").__all__ if name[0] != "_" and name not in names]
        assert not missing, f"sadrec.{package}: {missing}"
