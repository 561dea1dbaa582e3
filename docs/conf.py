"""How Sphinx builds the site: `make docs`."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import sadrec

project = "sadrec"
author = "The sadrec developers"
copyright = "2026, the sadrec developers"
version = release = sadrec.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["**/.ipynb_checkpoints"]

# Notebooks are executed at every build, from nothing; a cell that fails, fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 900  # seconds for a cell: a machine may be busy
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_output_stderr = "remove"  # progress bars
nb_merge_streams = True

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_dmath_double_inline = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the types are in the signatures
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

html_theme = "furo"
html_title = f"sadrec {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"

# Files beside docs/ that are pages of the site too, and what pages call them.
_BESIDE = {"SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def _link_beside(app: Sphinx, name: str, source: list[str]) -> None:
    for file, page in _BESIDE.items():
        source[0] = source[0].replace(f"](../{file})", f"](project/{page})")


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers show by themselves: no script, nothing from elsewhere."""
    app.connect("source-read", _link_beside)
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
