"""Options that say how to read a file, and the reading: interactions or comparisons."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))

# The columns of each kind, what may be "none", and the other arguments of its reader.
_COLUMNS = {
    "interactions": ("user", "item", "rating", "timestamp"),
    "comparisons": ("user", "winner", "loser", "left", "right", "weight"),
}
_MAY_BE_NONE = {"interactions": ("rating", "timestamp"), "comparisons": ("user", "weight")}
_OTHERS = {
    "interactions": ("duplicates", "allow_negative"),
    "comparisons": ("ties",),
}
_NAMES = dict.fromkeys((*_COLUMNS["interactions"], *_COLUMNS["comparisons"]))
READING = ("header", "text_ids", *_NAMES, *dict.fromkeys((*_OTHERS["interactions"], *_OTHERS["comparisons"])))
"""Names of all options of :func:`reading_options` but ``kind``."""


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what the file holds and where."""
    options = [
        click.option(
            "--kind",
            type=click.Choice(["auto", "interactions", "comparisons"]),
            default="auto",
            show_default=True,
            help="What the file holds; auto looks for columns of winners and losers.",
        )
    ]
    for name in _NAMES:
        none = " or none" if any(name in names for names in _MAY_BE_NONE.values()) else ""
        kinds = [kind for kind, names in _COLUMNS.items() if name in names]
        only = f" ({kinds[0]})" if len(kinds) == 1 else ""
        options.append(click.option(f"--{name}", metavar="COLUMN", help=f"The column of the {name}s{none}{only}."))
    options += [
        click.option("--header/--no-header", default=None, help="Whether the first line names the columns."),
        click.option("--text-ids", is_flag=True, help="Read ids as text even when they look like numbers."),
        click.option("--allow-negative", is_flag=True, help="Take negative ratings."),
        click.option(
            "--duplicates",
            type=click.Choice(["last", "sum", "count", "max"]),
            help="What becomes of a user and an item that occur together more than once.",
        ),
        click.option("--ties", type=click.Choice(["drop", "split"]), help="What becomes of comparisons nobody won."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_data(file: Path, kind: str, options: dict[str, Any]) -> Any:
    """Read interactions, or comparisons where the file has columns of winners and losers.

    Parameters
    ----------
    file
        The file.
    kind
        "interactions", "comparisons" or "auto".
    options
        The values of :data:`READING`; what was not given is None or False.
    """
    from sadrec import Comparisons, Interactions
    from sadrec.data.tables import Table

    header, text_ids = options["header"], options["text_ids"]
    given = {
        name: value
        for name, value in options.items()
        if value not in (None, False) and name not in ("header", "text_ids")
    }
    with Table(file, header, text_ids) as table:
        if kind == "auto":
            named = {"winner", "loser", "left", "right", "ties"} & set(given)
            kind = "comparisons" if named or holds_comparisons(table.columns or []) else "interactions"
        if odd := sorted(set(given) - set(_COLUMNS[kind]) - set(_OTHERS[kind])):
            raise click.UsageError(
                f"--{odd[0].replace('_', '-')} does not go with {kind}; their columns are {', '.join(_COLUMNS[kind])}"
            )
        for name in _MAY_BE_NONE[kind]:
            if given.get(name) == "none":
                given[name] = None
        reader: Any = Comparisons.read if kind == "comparisons" else Interactions.read
        return reader(table, **given)


def holds_comparisons(names: list[str]) -> bool:
    """Tell by the names of its columns whether a file holds comparisons."""
    from sadrec.data._columns import AUTO, find_column

    roles = {
        role
        for role in ("winner", "loser", "left", "right")
        if find_column(names, AUTO, role, required=False) is not None
    }
    # A column of labels alone is a rating of some kind; a column of winners is not.
    return any(name.strip().lower() == "winner" for name in names) or (
        "winner" in roles and ("loser" in roles or {"left", "right"} <= roles)
    )
