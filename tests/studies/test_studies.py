"""Every study can be started as its README says."""

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

STUDIES = Path(__file__).parents[2] / "studies"
NAMES = sorted(path.parent.name for path in STUDIES.glob("*/__main__.py"))
PAGES = sorted(STUDIES.rglob("README.md"))


def test_every_folder_is_a_study_that_can_be_started_and_is_listed():
    folders = [path.name for path in STUDIES.iterdir() if (path / "__init__.py").is_file()]
    assert sorted(folders) == NAMES
    listed = (STUDIES / "README.md").read_text()
    assert all(f"[{name}]({name}/README.md)" in listed for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_options_of_a_study_have_help(name):
    module = importlib.import_module(f"studies.{name}.__main__")
    commands = [entry for entry in vars(module).values() if isinstance(entry, click.Command)]
    command = next((entry for entry in commands if entry.name == name.replace("_", "-")), commands[0])
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0 and "Usage:" in shown.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_what_a_readme_names_is_there(page):
    text = page.read_text()
    for link in re.findall(r"\]\((?!http|#)([^)#]+)", text):
        assert (page.parent / link).exists(), link
    for module in re.findall(r"python -m (studies[\w.]*\w)", text):
        if module != "studies.NAME":
            importlib.import_module(module)
    for option in re.findall(r"(?<= )--[a-z][a-z-]*", text):
        sources = "".join(path.read_text() for path in STUDIES.rglob("*.py"))
        assert f'"{option}"' in sources or option == "--data", option
