"""Build the site with every notebook executed, and check what came out: ``make docs``.

A warning, a cell that fails, a page that is missing, a public name without an entry and anything that a page would load
from elsewhere are errors.
"""

import os
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path

from sphinx.cmd.build import build_main
from sphinx.util.inventory import InventoryFile

DOCS = Path(__file__).parent
PUBLIC = (
    "sadrec",
    "sadrec.data",
    "sadrec.features",
    "sadrec.models",
    "sadrec.evaluation",
    "sadrec.posterior",
    "sadrec.serving",
    "sadrec.cluster",
)
LOADED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["'](?:https?:)?//[^>]*>""")
STYLED = re.compile(r"""(?:@import\s+|url\()\s*["']?(?:https?:)?//""")


def sources() -> dict[str, Path]:
    """Return the pages there are to be, by name."""
    return {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}


def is_notebook(path: Path) -> bool:
    """Whether a page has cells that are executed."""
    return "```{code-cell}" in path.read_text(encoding="utf-8")


def faults(site: Path) -> list[str]:
    """Return what is wrong with a site that was built."""
    pages = sources()
    found = []
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    for name, source in pages.items():
        built = site / f"{name}.html"
        if not built.is_file():
            found.append(f"{name}: the page was not built")
            continue
        text = built.read_text(encoding="utf-8")
        if is_notebook(source) and 'class="cell_output' not in text:
            found.append(f"{name}: no cell of this notebook shows anything; was it executed?")
        if f'"{name}"' not in index:
            found.append(f"{name}: the search does not know this page")
        found += [f"{name}: loads something from elsewhere: {tag[:120]}" for tag in LOADED.findall(text)]
    for style in site.rglob("*.css"):
        if STYLED.search(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)}: loads something from elsewhere")
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind in inventory.data.values() for name in kind}
    for package in PUBLIC:
        for name in import_module(package).__all__:
            homes = {f"{home}.{name}" for home in PUBLIC}
            if not name.startswith("_") and not homes & known:
                found.append(f"{package}.{name}: the reference does not describe it")
    return found


def main(folder: str = "build/docs") -> int:
    """Build and check; return the exit code."""
    site = Path(folder)
    # Cells call the command `sadrec`.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    shutil.rmtree(site, ignore_errors=True)  # nothing of an earlier build is used
    code = build_main(["-b", "html", "-E", "-W", "--keep-going", "-q", str(DOCS), str(site)])
    if code:
        return code
    wrong = faults(site)
    for fault in wrong:
        sys.stderr.write(f"{fault}\n")
    pages = sources()
    notebooks = sum(map(is_notebook, pages.values()))
    sys.stdout.write(f"{len(pages)} pages, {notebooks} of them executed: {site / 'index.html'}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
