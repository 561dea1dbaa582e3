"""Errors of questions."""

from collections.abc import Callable
from typing import Any

from sadrec.data import UnknownIdError


class UnknownUserError(UnknownIdError):
    """A user that the model does not know."""


class Unanswerable(ValueError):
    """A well-formed question that this model cannot answer."""


class EmptyVisitorError(Unanswerable):
    """A visitor with an empty list of likes, comparisons or features."""


class NotKeptError(Exception):
    """Answers that could not be logged."""


Errors = tuple[type[Exception], ...]


def answered(ask: Callable[[], Any], refusals: Errors = (ValueError,)) -> Any:
    """Call a verb, and turn its errors into :class:`Unanswerable`."""
    try:
        return ask()
    except UnknownIdError:
        raise
    except refusals as error:
        raise Unanswerable(str(error)) from None
