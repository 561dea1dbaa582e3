"""Settings, declared once: name, type, range, default and help of each.

A model's settings are the fields of a dataclass, made by :func:`setting`. The constructor, the checks, the docstring,
the options of the command line, what ``tune`` searches and the table in the documents are all read from there.
"""

import math
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

from sadrec import _check


class Rule:
    """What values a setting takes."""

    def check(self, value: Any, name: str) -> Any:
        """Return the value as a plain Python value, or raise a ValueError that says what would be right."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return the rule in words."""
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number."""

    least: int = 0

    def check(self, value: Any, name: str) -> int:
        """Return the number."""
        return _check.whole(value, name, self.least)

    def describe(self) -> str:
        """Return the rule in words."""
        return f"whole number, at least {self.least}"


@dataclass(frozen=True)
class Number(Rule):
    """A finite number."""

    least: float = 0.0
    most: float = math.inf

    def check(self, value: Any, name: str) -> float:
        """Return the number."""
        return _check.number(value, name, self.least, self.most)

    def describe(self) -> str:
        """Return the rule in words."""
        return f"number, {self.least:g} or more" if self.most == math.inf else f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Share(Rule):
    """A number between 0 and 1."""

    def check(self, value: Any, name: str) -> float:
        """Return the number."""
        return _check.share(value, name)

    def describe(self) -> str:
        """Return the rule in words."""
        return "0 to 1"


@dataclass(frozen=True)
class Flag(Rule):
    """True or False."""

    def check(self, value: Any, name: str) -> bool:
        """Return the flag."""
        return _check.flag(value, name)

    def describe(self) -> str:
        """Return the rule in words."""
        return "True or False"


class OneOf(Rule):
    """One of a few words."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def check(self, value: Any, name: str) -> str:
        """Return the word."""
        return _check.one_of(value, name, self.choices)

    def describe(self) -> str:
        """Return the rule in words."""
        return " or ".join(map(repr, self.choices))


class Seed(Rule):
    """A whole number, a numpy generator or None."""

    def check(self, value: Any, name: str) -> int:
        """Return a seed."""
        return _check.seed(value, name)

    def describe(self) -> str:
        """Return the rule in words."""
        return "whole number, numpy.random.Generator or None"


class Threads(Rule):
    """A number of threads; 0 means all cores."""

    def check(self, value: Any, name: str) -> int:
        """Return how many threads."""
        return _check.threads(value, name)

    def describe(self) -> str:
        """Return the rule in words."""
        return "whole number, 0 for all cores"


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
    search: Span | Sequence[Any] | None = None,
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
        What ``tune`` tries: a span, or a list of values; None: it is left as it is.
    positional
        Whether it may be given without its name.
    """
    return field(default=default, kw_only=not positional, metadata={"rule": rule, "help": help, "search": search})


def declared(model: Any) -> dict[str, Field[Any]]:
    """Return the settings that a model or its class declares, by name, in the order of the constructor.

    >>> @dataclass
    ... class Model:
    ...     factors: int = setting(64, Whole(1), "The length of the vectors.")
    >>> declared(Model)["factors"].metadata["help"]
    'The length of the vectors.'
    """
    return {entry.name: entry for entry in fields(model) if entry.init}


def checked(model: Any, **instead: Any) -> dict[str, Any]:
    """Return the settings of a model as plain values, each checked by its rule; None stays where it is the default.

    Parameters
    ----------
    model
        The model.
    instead
        Values that take the place of its own.
    """
    values = {}
    for name, entry in declared(model).items():
        value = instead.get(name, getattr(model, name))
        undecided = value is None and entry.default is None
        values[name] = None if undecided else entry.metadata["rule"].check(value, name)
    return values


def described(model: Any) -> str:
    """Return the settings of a class as the section "Parameters" of a docstring."""
    import textwrap

    lines = ["Parameters", "----------"]
    for name, entry in declared(model).items():
        lines += [name, *textwrap.wrap(entry.metadata["help"], 112, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)
