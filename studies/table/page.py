"""A page of headings, paragraphs, tables and pictures, written as Markdown and as one HTML file."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .6rem; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
img { max-width: 100%; display: block } figure { margin: 1.5rem 0 } figcaption { color: #555 }
code { background: #f4f4f4; padding: .1rem .2rem }
"""


@dataclass(frozen=True)
class Heading:
    """A heading."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``**bold**`` and ```code``` are understood."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows under a header; columns in ``numbers`` are set to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Picture:
    """A picture with a file name, its bytes (PNG) and a caption."""

    name: str
    content: bytes
    caption: str


Block = Heading | Paragraph | Table | Picture


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Write the page as Markdown; pictures are files beside it.

    >>> print(to_markdown("T", [Table(["a", "b"], [["x", "1"]], frozenset({1}))]), end="")
    # T
    <BLANKLINE>
    | a | b |
    |---|---:|
    | x | 1 |
    """
    parts = [f"# {title}"]
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"## {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(block.text)
        elif isinstance(block, Picture):
            parts.append(f"![{block.caption}]({block.name})")
        else:
            rules = "".join("---:|" if place in block.numbers else "---|" for place in range(len(block.header)))
            lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in
                     (block.header, *block.rows)]  # fmt: skip
            parts.append("\n".join([lines[0], f"|{rules}", *lines[1:]]))
    return "\n\n".join(parts) + "\n"


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Write the page as one HTML file with the pictures inside."""
    parts = [f"<h1>{escape(title)}</h1>"]
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"<h2>{escape(block.text)}</h2>")
        elif isinstance(block, Paragraph):
            parts.append(f"<p>{_inline(block.text)}</p>")
        elif isinstance(block, Picture):
            source = base64.b64encode(block.content).decode("ascii")
            caption = escape(block.caption)
            parts.append(
                f'<figure><img alt="{caption}" src="data:image/png;base64,{source}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        else:
            header = "".join(f"<th>{_inline(cell)}</th>" for cell in block.header)
            rows = "\n".join(f"<tr>{_cells(row, block.numbers)}</tr>" for row in block.rows)
            parts.append(f"<table>\n<tr>{header}</tr>\n{rows}\n</table>")
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _cells(row: Sequence[str], numbers: frozenset[int]) -> str:
    return "".join(
        f"<td{' class=number' if place in numbers else ''}>{_inline(cell)}</td>" for place, cell in enumerate(row)
    )


def _inline(text: str) -> str:
    marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", marked)
