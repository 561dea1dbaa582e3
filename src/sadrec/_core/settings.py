"""Settings, declared once: name, type, range, default and help of each.

A model's settings are the fields of a dataclass, made by :func:`setting`. The constructor, the checks, the docstring,
the options of the command line, what ``tune`` searches and the table in the documents are all read from there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any

from sadrec._core import check as _check

KINDS = ("interactions", "comparisons")
_MOST = 2**53
"""The largest whole number of a setting without a bound of its own: what is computed from it is a finite float."""


class Rule:
    """The values that a setting allows."""

    words: str = ""

    def check(self, value: Any, name: str) -> Any:
        """Return the value as a plain Python value, or raise a ValueError that says what would be right."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return the rule in words."""
        return self.words


class Whole(Rule):
    """A whole number."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self._least, self._most = least, most
        self.words = f"whole number, at least {least}" if most is None else f"whole number, {least} to {most}"

    def check(self, value: Any, name: str) -> int:
        """Return the number; the bound that all have is named only to those who are above it."""
        _check.whole(value, name, self._least, self._most)
        return _check.whole(value, name, self._least, _MOST if self._most is None else self._most)


class Number(Rule):
    """A finite number."""

    def __init__(self, least: float = 0.0, most: float = math.inf) -> None:
        self.check = partial(_check.number, least=least, most=most)  # type: ignore[method-assign]
        self.words = f"number, {least:g} or more" if most == math.inf else f"{least:g} to {most:g}"


class ZeroOr(Rule):
    """0, which means none, or a number between two bounds."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most
        self.words = f"0, or {least:g} to {most:g}"

    def check(self, value: Any, name: str) -> float:
        """Return the number."""
        if not _check.is_number(value) or not (value == 0 or self._least <= value <= self._most):
            raise ValueError(f"{name} must be {self.words}, not {value!r}")
        return float(value)


class Share(Rule):
    """A number between 0 and 1."""

    words, check = "0 to 1", staticmethod(_check.share)


class Flag(Rule):
    """True or False."""

    words, check = "True or False", staticmethod(_check.flag)


class OneOf(Rule):
    """One of a few words."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.check = partial(_check.one_of, choices=choices)  # type: ignore[method-assign]
        self.words = " or ".join(map(repr, choices))


class Seed(Rule):
    """A whole number, a numpy generator or None."""

    words, check = "whole number, numpy.random.Generator or None", staticmethod(_check.seed)


class Threads(Rule):
    """A number of threads; 0 means all cores."""

    words, check = "whole number, 0 for all cores", staticmethod(_check.threads)


class SettingGroup(Rule):
    """A mapping of settings that another class declares; :func:`checked` checks each by its own rule."""

    def __init__(self, declaration: type) -> None:
        self.entries = declared(declaration)
        self.words = f"mapping of {', '.join(self.entries)}"

    def check(self, value: Any, name: str) -> dict[str, Any]:
        """Return the mapping, refusing names that are not declared."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} must be a {self.words}, as in {{'schedule': 'constant'}}, not {value!r}")
        for key in value:
            if key not in self.entries:
                raise ValueError(f"unknown setting {key!r} in {name}: it must be a {self.words}")
        return dict(value)


@dataclass(frozen=True)
class Span:
    """Between which values ``tune`` looks for a setting, evenly on a logarithmic scale where ``log`` says so."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a span needs low < high, and low > 0 on a log scale; got {self.low} to {self.high}")


def setting(
    default: Any,
    rule: Rule,
    help: str,
    *,
    search: Span | Sequence[Any] | Mapping[str, Any] | None = None,
    kinds: Sequence[str] = KINDS,
    needs: Mapping[str, str] | None = None,
    positional: bool = False,
) -> Any:
    """Declare a setting of a model: a field of its dataclass.

    Parameters
    ----------
    default
        The value when none is given. None means that the data decides.
    rule
        What values it takes.
    help
        One or two sentences for the docstring, the command line and the documents.
    search
        What ``tune`` tries: a span or a list of values, or one of them for each kind of data; None: nothing.
    kinds
        The kinds of data for which it has an effect.
    needs
        The values of other settings that it needs to have an effect.
    positional
        Whether it may be given without its name.
    """
    if kinds != KINDS:
        help = f"{help} Only for {' and '.join(kinds)}."
    metadata = {"rule": rule, "help": help, "search": search, "kinds": kinds, "needs": needs or {}}
    return field(default=default, kw_only=not positional, metadata=metadata)


def declared(model: Any) -> dict[str, Field[Any]]:
    """Return the settings that a model or its class declares, by name, in the order of the constructor.

    >>> @dataclass
    ... class Model:
    ...     factors: int = setting(64, Whole(1), "The length of the vectors.")
    >>> declared(Model)["factors"].metadata["help"]
    'The length of the vectors.'
    """
    return {entry.name: entry for entry in fields(model) if entry.init}


def members(entry: Field[Any]) -> Mapping[str, Field[Any]]:
    """Return the settings in a group, by name; none where the setting is a single value."""
    rule = entry.metadata["rule"]
    return rule.entries if isinstance(rule, SettingGroup) else {}


def opened(model: Any) -> dict[str, Field[Any]]:
    """Return the settings that a model or its class declares, by name, with those of a group in its place."""
    entries: dict[str, Field[Any]] = {}
    for name, entry in declared(model).items():
        entries |= members(entry) or {name: entry}
    return entries


def values_of(model: Any) -> dict[str, Any]:
    """Return the settings of a model as they were given, by name, with those of a group in its place."""
    values: dict[str, Any] = {}
    for name, entry in declared(model).items():
        rule, value = entry.metadata["rule"], getattr(model, name)
        if isinstance(rule, SettingGroup):
            values |= {key: inner.default for key, inner in rule.entries.items()}
            values |= {} if value is None else rule.check(value, name)
        else:
            values[name] = value
    return values


def search_space(model: Any, kind: str) -> dict[str, Any]:
    """Return the search space of ``tune`` for a kind of data: settings that have an effect there and were not given.

    >>> @dataclass
    ... class Model:
    ...     factors: int = setting(64, Whole(1), "Length.", search={"interactions": (32, 64), "comparisons": (2, 4)})
    ...     rate: float = setting(0.1, Number(), "The rate.", search=Span(0.01, 1.0))
    >>> search_space(Model(rate=0.2), "comparisons")
    {'factors': (2, 4)}
    """
    space, values = {}, values_of(model)
    for name, entry in opened(model).items():
        about = entry.metadata
        search = about["search"].get(kind) if isinstance(about["search"], Mapping) else about["search"]
        given = values[name] != entry.default
        apart = any(values[other] not in (None, value) for other, value in about["needs"].items())
        if search is not None and kind in about["kinds"] and not given and not apart:
            space[name] = search
    return space


def checked(model: Any) -> dict[str, Any]:
    """Return the settings of a model as plain values, each checked by its rule, with those of a group in its place.

    None stays where it is the default.
    """
    given, values = values_of(model), {}
    for name, entry in opened(model).items():
        undecided = given[name] is None and entry.default is None
        values[name] = None if undecided else entry.metadata["rule"].check(given[name], name)
    return values


def described(model: Any) -> str:
    """Return the settings of a class as the section "Parameters" of a docstring."""
    import textwrap

    lines = ["Parameters", "----------"]
    for name, entry in declared(model).items():
        help = entry.metadata["help"]
        help += "".join(f" ``{part}``: {inner.metadata['help']}" for part, inner in members(entry).items())
        lines += [name, *textwrap.wrap(help, 112, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)
