"""The page of the settings says what the code declares."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_is_made_from_the_declarations():
    module = runpy.run_path(str(DOCS / "settings.py"))
    assert (DOCS / "settings.md").read_text() == module["page"](), "run `make settings`"
