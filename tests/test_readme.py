"""What the README says must run."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_quick_start_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_two_commands_are_named():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text and "make test" in text


def test_links_into_the_repository_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!http|#|mailto)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
