"""Write docs/settings.md from the declarations of the settings: ``make settings`` (a test compares the two)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sadrec import SAD
from sadrec._core.settings import KINDS, Span, declared, members
from sadrec.posterior import GibbsSAD

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Settings

The default "data" means that `fit` decides by the data: [what SAD() does, and why](defaults.md). `model.settings` has
the values that were used, `model.settings.origins` where each came from. On the command line a setting is an option, as
`--negative-candidates`; `--advanced` takes a mapping in JSON. A setting that solver or loss cannot use is refused.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    titles = {SAD: "SAD, and BPR but for `rival_regularization`", GibbsSAD: "GibbsSAD"}
    for model, title in titles.items():
        parts.append(
            f"\n## {title}\n\n| setting | values | default | `tune` tries | what it is |\n|---|---|---|---|---|\n"
        )
        entries = {}
        for name, entry in declared(model).items():
            entries |= {name: entry} | {f"{name}[{part!r}]": inner for part, inner in members(entry).items()}
        for name, entry in entries.items():
            rule, search = entry.metadata["rule"].describe(), searched(entry.metadata)
            default = "data" if entry.default is None else f"`{entry.default!r}`"
            help = " ".join([entry.metadata["help"], *needed(entry.metadata["needs"])])
            parts.append(f"| `{name}` | {rule} | {default} | {search} | {help} |\n")
    return "".join(parts)


def needed(needs: Mapping[str, str]) -> list[str]:
    """Return a sentence for every setting that must have a value, or the setting is refused."""
    return [f"Only with {other}={value!r}." for other, value in needs.items()]


def searched(about: Mapping[str, Any]) -> str:
    """Return what ``tune`` tries, in words, by kind of data where that matters."""
    search = about["search"]
    by_kind = search if isinstance(search, Mapping) else {kind: search for kind in about["kinds"] if search is not None}
    tries = {kind: _in_words(values) for kind, values in by_kind.items()}
    if len(tries) == len(KINDS) and len(set(tries.values())) == 1:
        return next(iter(tries.values()))
    return "; ".join(f"{words} ({kind})" for kind, words in tries.items())


def _in_words(search: Any) -> str:
    if isinstance(search, Span):
        return f"{search.low:g} to {search.high:g}{', logarithmic' if search.log else ''}"
    return ", ".join(map(str, search))


if __name__ == "__main__":
    PAGE.write_text(page())
