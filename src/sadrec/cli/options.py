"""Options that several commands share: how to read a file, the settings of a model, ids."""

import difflib
import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from sadrec._core import settings as _settings
from sadrec.cli.output import without_panics

Command = Callable[..., Any]
Decorated = TypeVar("Decorated", bound=Command)


class _File(click.Path):
    """An existing file. Click reports a file in an unreadable folder as missing; this names the folder's error."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the path, or say what is wrong with it."""
        try:
            Path(os.fspath(value)).stat()
        except PermissionError:
            self.fail(f"File {os.fspath(value)!r} may not be read: a folder above it is closed.", parameter, context)
        except (OSError, ValueError):
            pass  # click says it
        return super().convert(value, parameter, context)


a_file = _File(exists=True, dir_okay=False, path_type=Path)
an_output = click.Path(dir_okay=False, path_type=Path)
a_folder = click.Path(file_okay=False, path_type=Path)
a_share = click.FloatRange(0, 1, min_open=True, max_open=True)
file_argument = click.argument("file", type=a_file)


def _no_table(context: click.Context, _: click.Parameter, path: Path) -> Path:
    """Raise if a table is given in place of a model; the error shows the command that makes one."""
    if path.is_dir():
        return path
    with path.open("rb") as file:
        start = file.read(512)
    line = start.split(b"\n")[0]
    text = not any(byte < 32 and byte not in b"\t\r\n" for byte in start)
    if start[:4] == b"PAR1" or (text and any(mark in line for mark in (b",", b";", b"\t", b"::", b"|", b'{"'))):
        raise click.ClickException(
            f"{str(path)!r} cannot be read as a sadrec model: it is a table. Type `sadrec fit {path} -o model.sad`, "
            f"then `sadrec {context.info_name} model.sad`"
        )
    return path


model_argument = click.argument("model", type=_File(exists=True, path_type=Path), callback=_no_table)
user_option = click.option("--user", help="Id of the user.  [default: the only one, or the average of all]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
titles_option = click.option(
    "--titles",
    type=a_file,
    help="Table of the items' titles (columns item, title). Output shows titles, and you can type them instead of ids.",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress bar.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")


def engine_options(command: Command) -> Command:
    """Add the options that say where to compute; the command takes them as ``engine``, None for this process."""
    options = [
        click.option("--engine", type=click.Choice(["ray"]), help="Compute on a cluster of Ray."),
        click.option("--address", help="Address of the cluster, or auto.  [default: RAY_ADDRESS, or a new one]"),
        click.option("--workers", type=click.IntRange(min=1), help="Number of workers.  [default: 2]"),
    ]

    @functools.wraps(command)
    def with_engine(*arguments: Any, **values: Any) -> Any:
        given = _take(values, ("address", "workers"))
        engine = values.pop("engine")
        if engine is None and given:
            raise click.UsageError(f"{spelled(next(iter(given)))} goes with --engine ray")
        if engine is not None:
            from sadrec.cluster import Ray

            engine = Ray(**given)
        return command(*arguments, engine=engine, **values)

    return _all(options, with_engine)


def number_option(default: int, help: str, least: int = 1) -> Callable[[Decorated], Decorated]:
    """Return the option ``-n``, the number of items."""
    kind = click.IntRange(min=least)
    return click.option("-n", "--number", "N", type=kind, default=default, help=help)


def spelled(name: str) -> str:
    """Return the command-line option of a setting, such as ``--learning-rate``."""
    return f"--{ {'random_state': 'seed', 'num_threads': 'threads'}.get(name, name).replace('_', '-') }"


def parse_id(ids: Any, text: str | None) -> Any:
    """Parse an id: text, or a whole number, a number or a date where the ids are such; None stays None."""
    import numpy as np

    if text is None:
        return None
    whole = (int, "whole number")
    kinds = {"i": whole, "u": whole, "f": (float, "number"), "M": (np.datetime64, "date")}
    convert, name = kinds.get(ids.array.dtype.kind, (str, "text"))
    try:
        return convert(text)
    except ValueError:
        example = f", such as {ids.array[0]}" if len(ids) else ""
        raise click.BadParameter(f"{text!r} is not a {name}, but the {ids.what}s are{example}") from None


def read_titles(path: Path | None, ids: Any) -> Mapping[Any, str]:
    """Return the titles of items by id; none without a table. A table of other items than the model's is refused."""
    if path is None:
        return {}
    from sadrec.data import Items

    titles = Items.read(path)
    if len(ids) and not any(item in titles for item in ids.array):
        has = f"ids such as {next(iter(titles))}" if titles else "no rows"
        raise ValueError(f"{path} names none of the model's items, such as {ids.array[0]}: it has {has}")
    return titles


def features_options(command: Command) -> Command:
    """Add the options that name tables of features, for :func:`read_features`."""
    items = "Table of features of the items: a column of ids, and columns of features."
    tags = "Column of these tables with tags separated by |; can be repeated."
    options = [
        click.option("--item-features", type=a_file, help=items),
        click.option("--user-features", type=a_file, help="The same for the users."),
        click.option("--tags", multiple=True, metavar="COLUMN", help=tags),
    ]
    return _all(options, command)


def read_features(paths: Mapping[str, Path | None], ids: Mapping[str, Any], tags: Sequence[str]) -> dict[str, Any]:
    """Return the tables of features by the names that ``fit`` takes them by; their ids get the type of the data's."""
    import polars as pl

    from sadrec.features import Features, id_column, read_table

    given, left = {}, set(tags)
    for what, path in paths.items():
        if path is None:
            continue
        frame = read_table(path, what)
        column = id_column(frame.columns, what)
        if ids[what].dtype.kind == "U":
            frame = frame.with_columns(pl.col(column).cast(pl.String))
        own = [name for name in tags if name in frame.columns]
        left -= set(own)
        given[f"{what}_features"] = Features(frame, id=column, tags=own)
    if left:
        raise click.UsageError(f"--tags {min(left)}: no table of features has such a column")
    return given


def parse_item(ids: Any, text: str, titles: Mapping[Any, str]) -> Any:
    """Turn the text of an id, or else a title, into the id of an item."""
    wanted = text.strip().casefold()
    same = [item for item in ids.array if item in titles and titles[item].strip().casefold() == wanted]
    if same and not any(str(item) == text for item in ids.array):
        if len(same) > 1:
            raise click.BadParameter(f"{len(same)} items are called {text!r}: give an id, such as {same[0]}")
        return same[0].item() if hasattr(same[0], "item") else same[0]
    try:
        return parse_id(ids, text)
    except click.BadParameter as error:
        if not titles:
            raise click.BadParameter(f"{error.message}; to ask by title, give --titles TABLE") from None
        near = difflib.get_close_matches(text, titles.values(), 3)
        meant = f": did you mean {' or '.join(map(repr, near))}?" if near else ", nor is it an id"
        raise click.BadParameter(f"no item is called {text!r}{meant}") from None


# -- reading ----------------------------------------------------------------------------------------------------------

_COLUMNS = {
    "user": "Column of the users' ids; none where one judge made all comparisons.",
    "item": "Column of the items' ids (interactions).",
    "rating": "Column of the ratings, or none (interactions).",
    "timestamp": "Column of the times, or none (interactions).",
    "winner": "Column of the preferred items (comparisons).",
    "loser": "Column of the other items (comparisons).",
    "left": "Column of the first items, where the winner is named (comparisons).",
    "right": "Column of the second items (comparisons).",
    "left_score": "Column of the first items' scores, where no winner is named (comparisons).",
    "right_score": "Column of the second items' scores (comparisons).",
    "weight": "Column of the weights, or none.",
}
_OF = {
    "interactions": ("user", "item", "rating", "timestamp", "weight", "duplicates", "allow_negative"),
    "comparisons": (
        *("user", "winner", "loser", "left", "right", "left_score", "right_score", "weight", "features", "ties"),
    ),
}
_MAY_BE_NONE = {"interactions": ("rating", "timestamp", "weight"), "comparisons": ("user", "weight")}


@dataclass(frozen=True)
class Reading:
    """Options for reading files; ``given`` are the columns and roles that were named."""

    kind: str
    header: bool | None
    text_ids: bool
    given: dict[str, Any]
    quiet: bool = False

    def options(self) -> list[str]:
        """Return the options that were given, as they are spelled."""
        header = [] if self.header is None else ["--header" if self.header else "--no-header"]
        others = ["--kind"] * (self.kind != "auto") + ["--text-ids"] * self.text_ids
        return [*map(spelled, self.given), *others, *header]

    def read(self, file: Path, kind: str | None = None) -> Any:
        """Read interactions, or comparisons where the file has columns of winners and losers."""
        return self._read(file, kind or self.kind)[0]

    def read_with_columns(self, file: Path) -> tuple[Any, Mapping[str, str]]:
        """Read a file, and return the column of each role, too."""
        data, _, columns = self._read(file, self.kind)
        return data, columns

    def read_to_learn(self, files: Sequence[Path], elsewhere: bool) -> tuple[Any, Any]:
        """Return what a model learns from, and with a column of weights the interactions with weights as ratings.

        Several files, or a folder, are Parquet with interactions; with ``elsewhere`` workers read them.
        """
        from sadrec.data import ParquetFiles, as_interactions, holds_interactions, with_weights

        if elsewhere and (self.kind == "comparisons" or not all(map(holds_interactions, files))):
            raise click.UsageError(
                f"{files[0]} is not Parquet with interactions, which --engine has workers read: write it as Parquet, "
                "or leave --engine out"
            )
        if not elsewhere and len(files) == 1 and not files[0].is_dir():
            return self._read(files[0], self.kind, weigh=True)[:2]
        if self.kind == "comparisons" or not set(self.given) <= set(_OF["interactions"]):
            raise click.UsageError("several files, or a folder, hold interactions: give one file")
        parquet = ParquetFiles(files, text_ids=self.text_ids, **self._columns("interactions"))
        if elsewhere:
            return parquet, None
        return (as_interactions(parquet), None) if parquet.weight is None else with_weights(parquet, parquet.weight)

    def interactions(self, file: Path) -> Any:
        """Read interactions."""
        if self.kind == "comparisons":
            raise click.UsageError("this command reads interactions: leave out --kind comparisons")
        return self.read(file, "interactions")

    def comparisons(self, file: Path) -> Any:
        """Read comparisons."""
        if self.kind == "interactions":
            raise click.UsageError("this command reads comparisons: leave out --kind interactions")
        return self.read(file, "comparisons")

    def _columns(self, kind: str) -> dict[str, Any]:
        """Return what was said about columns, by the names that readers take it by; of a kind that has such columns."""
        if unfit := [name for name in self.given if name not in _OF[kind]]:
            fitting = ", ".join(name for name in _OF[kind] if name in _COLUMNS)
            raise click.UsageError(f"{spelled(unfit[0])} does not go with {kind}; their columns are {fitting}")
        return {
            name: None if value == "none" and name in _MAY_BE_NONE[kind] else value
            for name, value in self.given.items()
        }

    def _read(self, file: Path, kind: str, weigh: bool = False) -> tuple[Any, Any, Mapping[str, str]]:
        """Return what a file holds, with ``weigh`` its weights, if any, and the column of each role."""
        from sadrec import Comparisons, Interactions
        from sadrec._core import check

        check.room(check.START)
        from sadrec.data import Table, holds_comparisons, with_weights

        with Table(file, self.header, self.text_ids, not self.quiet) as table:
            if kind == "auto":
                named = (set(_OF["comparisons"]) - set(_OF["interactions"])) & set(self.given)
                kind = "comparisons" if named or holds_comparisons(table.columns or []) else "interactions"
            columns = self._columns(kind)
            weight = columns.pop("weight", None) if kind == "interactions" else None
            with without_panics() if table.is_parquet else nullcontext():
                if kind == "comparisons":
                    return Comparisons.read(table, **columns), None, table.chosen
                if weigh and weight is not None:
                    return *with_weights(table, weight, **columns), table.chosen
                return Interactions.read(table, **columns), None, table.chosen


def _listed(context: Any, option: Any, value: str | None) -> list[str] | None:
    return None if value is None else [name.strip() for name in value.split(",")]


def reading_options(command: Command) -> Command:
    """Add the options for reading a file; the command takes them as ``reading``."""
    options = [
        click.option("--kind", type=click.Choice(["auto", *_OF]), default="auto",
                     help="What the file holds; auto looks for columns of winners and losers."),
        *(click.option(spelled(name), name, metavar="COLUMN", help=text) for name, text in _COLUMNS.items()),
        click.option("--features", metavar="COLUMNS", callback=_listed,
                     help="Columns of numbers to adjust for, separated by commas (comparisons)."),
        click.option("--header/--no-header", default=None, help="Whether the first line names the columns."),
        click.option("--text-ids", is_flag=True, help="Read ids as text even when they look like numbers."),
        click.option("--allow-negative", is_flag=True, default=None, help="Take negative ratings."),
        click.option("--duplicates", type=click.Choice(["last", "sum", "count", "max"]),
                     help="What to do with several rows of one user and item."),
        click.option("--ties", type=click.Choice(["keep", "drop", "split"]),
                     help="What to do with ties.  [default: keep]"),
    ]  # fmt: skip

    @functools.wraps(command)
    def with_reading(*arguments: Any, **values: Any) -> Any:
        given = _take(values, dict.fromkeys((*_OF["interactions"], *_OF["comparisons"])))
        quiet = values.get("quiet", False)
        reading = Reading(values.pop("kind"), values.pop("header"), values.pop("text_ids"), given, quiet)
        return command(*arguments, reading=reading, **values)

    return _all(options, with_reading)


def _take(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Pop options from the arguments of a command; return those that were given."""
    values_taken = {name: values.pop(name) for name in names}
    return {name: value for name, value in values_taken.items() if value is not None}


def _all(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


# -- settings ---------------------------------------------------------------------------------------------------------


def settings_options(declaration: type) -> Callable[[Command], Command]:
    """Add an option for each setting of a class; the command takes the given ones as ``settings``."""
    declared = _settings.declared(declaration)

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_settings(*arguments: Any, **values: Any) -> Any:
            return command(*arguments, settings=_take(values, declared), **values)

        return _all([_option(name, entry) for name, entry in declared.items()], with_settings)

    return add


def _option(name: str, entry: Any) -> Callable[[Command], Command]:
    rule, option = entry.metadata["rule"], spelled(name)
    help = "Random seed" if isinstance(rule, _settings.Seed) else entry.metadata["help"].split(". ")[0].rstrip(".")
    if isinstance(rule, _settings.Flag):
        option += f"/--no-{option[2:]}"
    help += "." if entry.default is None else f".  [default: {entry.default}]"
    return click.option(option, name, type=value_type(rule), default=None, help=help)


def number_or_learn(text: str) -> Any:
    """Read a number, or the word "learn"."""
    try:
        return text if text == "learn" else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number nor 'learn'") from None


def mapping(text: str) -> Any:
    """Read a mapping in JSON."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise click.BadParameter(f'{text!r} is not a mapping in JSON, such as \'{{"schedule": "constant"}}\'') from None


_TYPES = {
    _settings.SettingGroup: click.types.FuncParamType(mapping),
    _settings.Flag: click.BOOL, _settings.Number: click.FLOAT, _settings.Share: click.FLOAT,
    _settings.ZeroOr: click.FLOAT, _settings.Seed: click.IntRange(min=0), _settings.Threads: click.INT,
    _settings.Whole: click.INT,
}  # fmt: skip


def value_type(rule: _settings.Rule) -> Any:
    """Return the click type of a setting."""
    if isinstance(rule, _settings.OneOf):
        return click.Choice(rule.choices)
    return _TYPES.get(type(rule)) or click.types.FuncParamType(number_or_learn)
