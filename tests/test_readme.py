"""What the README and the documents say must run."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_documents_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}  # the blocks of a page build on each other
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        if "SADREC_DATA" in block and not os.environ.get("SADREC_DATA"):
            pytest.skip("needs real data: set SADREC_DATA to the folder that holds it")
        if "import hnswlib" in block:
            pytest.importorskip("hnswlib", reason="the recipe for a vector index needs `pip install hnswlib`")
        exec(compile(block, page.name, "exec"), names)


def test_the_two_commands_are_named():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text and "make test" in text


def test_links_into_the_repository_exist():
    for page in {*PAGES, *(ROOT / "docs").rglob("*.md")}:
        for link in re.findall(r"\]\((?!http|#|mailto)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
