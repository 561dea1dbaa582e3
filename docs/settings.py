"""Write docs/settings.md from the declarations of the settings: ``make settings`` (a test compares the two)."""

from pathlib import Path

from sadrec import SAD
from sadrec._settings import Span, declared
from sadrec.posterior import GibbsSAD

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Settings

Every setting of the models, as declared in the code. "data" as the default means that `fit` decides by the data:
[What SAD() does, and why](defaults.md). `model.settings` tells what was used, `model.settings.origins` where each value
came from. On the command line a setting is an option of the same name, such as `--negative-candidates`.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    titles = {SAD: "SAD, and BPR but for `rival_regularization` and `adaptive`", GibbsSAD: "GibbsSAD"}
    for model, title in titles.items():
        parts.append(
            f"\n## {title}\n\n| setting | values | default | `tune` tries | what it is |\n|---|---|---|---|---|\n"
        )
        for name, entry in declared(model).items():
            rule, search = entry.metadata["rule"].describe(), searched(entry.metadata["search"])
            default = "data" if entry.default is None else f"`{entry.default!r}`"
            parts.append(f"| `{name}` | {rule} | {default} | {search} | {entry.metadata['help']} |\n")
    return "".join(parts)


def searched(search: object) -> str:
    """Return what ``tune`` tries, in words."""
    if search is None:
        return ""
    if isinstance(search, Span):
        return f"{search.low:g} to {search.high:g}{', logarithmic' if search.log else ''}"
    return ", ".join(map(str, search)) if isinstance(search, list | tuple) else str(search)


if __name__ == "__main__":
    PAGE.write_text(page())
