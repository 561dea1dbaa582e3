"""The site is whole: every notebook runs, a cell that fails, fails its build, a page that is missing is noticed."""

import os
import runpy
import sys
from pathlib import Path

import pytest

sphinx = pytest.importorskip("sphinx.cmd.build")
pytest.importorskip("myst_nb")
pytest.importorskip("furo")
DOCS = Path(__file__).parents[1] / "docs"
PAGE = """---
file_format: mystnb
kernelspec: {{name: python3, display_name: Python 3}}
---

# A page

```{{code-cell}} python
{code}
```
"""


def built(folder, code):
    """Build a site of one notebook with the settings of ours; return the exit code and where it is."""
    source, site = folder / "source", folder / "site"
    (source / "_static").mkdir(parents=True)
    (source / "_static" / "site.css").touch()
    (source / "conf.py").write_text((DOCS / "conf.py").read_text())
    (source / "index.md").write_text(PAGE.format(code=code))
    return sphinx.build_main(["-b", "html", "-W", "-q", str(source), str(site)]), site


def test_a_cell_that_fails_fails_the_build(tmp_path):
    assert built(tmp_path, "raise ValueError('broken')")[0] != 0


def test_cells_are_executed_and_formulas_need_no_script(tmp_path):
    code, site = built(tmp_path, "print(6 * 7)\n```\n\n$x^2$\n\n```{code-cell} python\n1")
    text = (site / "index.html").read_text()
    assert code == 0
    assert ">42" in text and "<math" in text and "mathjax.js" not in text and "tex-mml" not in text


def test_what_a_site_lacks_is_named(tmp_path):
    checks = runpy.run_path(str(DOCS / "build.py"))
    code, site = built(tmp_path, "print(1)")
    assert code == 0
    (site / "index.html").write_text('<script src="https://cdn.example/x.js"></script>')
    wrong = "\n".join(checks["faults"](site))
    assert "index: loads something from elsewhere" in wrong
    assert "theory: the page was not built" in wrong
    assert "sadrec.SAD: the reference does not describe it" in wrong


def test_every_page_is_in_the_site():
    pages = runpy.run_path(str(DOCS / "build.py"))["sources"]()
    assert {"index", "theory", "errata", "settings", "tutorials/ratings", "api/index"} <= set(pages)


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_every_notebook_runs(page, tmp_path, monkeypatch):
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    notebook = jupytext.read(page, fmt="md:myst")
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
