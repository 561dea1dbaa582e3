"""A page about an arena in one file: the explorer's views with the report inside, without a service."""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "explorer"
_MODULES = ("dom.js", "words.js", "arena.js", "page.js")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#panel">Skip to the panel</a>
<header class="top"><p class="brand">{title}</p></header>
<nav class="tabs" aria-label="Panels"><ul id="tabs"></ul></nav>
<p id="announced" class="unseen" role="status"></p>
<main id="panel" tabindex="-1"><noscript><p>This page needs JavaScript.</p></noscript></main>
<footer><p>Made by sadrec. Margins are in log-odds: 0 is even, 1 wins in 73 of 100, 3 in 95.</p></footer>
<script type="application/json" id="report">{report}</script>
<script>"use strict";
{script}</script>
</body>
</html>
"""


def static_page(report: dict[str, Any], title: str) -> str:
    """Return a page of HTML that shows a report of an arena and fetches nothing."""
    texts = [(_FOLDER / name).read_text(encoding="utf-8") for name in _MODULES]
    script = "\n".join(re.sub(r"(?m)^import .*?;\n|^export ", "", text) for text in texts)
    data = json.dumps(report, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    style = (_FOLDER / "style.css").read_text(encoding="utf-8")
    return _PAGE.format(title=escape(title), style=style, report=data, script=f"{{\n{script}}}")
