"""Questions without an answer."""

from collections.abc import Callable
from typing import Any

from sadrec.data.ids import UnknownIdError


class UnknownUserError(UnknownIdError):
    """A user that the model does not know."""


class Unanswerable(ValueError):
    """A question that is well formed but has no answer in this model."""


class NothingSaidError(Unanswerable):
    """A visitor described by nothing."""


class NotKeptError(Exception):
    """Answers of people that the log could not take."""


Errors = tuple[type[Exception], ...]


def answered(ask: Callable[[], Any], refusals: Errors = (ValueError,)) -> Any:
    """Ask, and turn what a verb refuses into a question without an answer."""
    try:
        return ask()
    except UnknownIdError:
        raise
    except refusals as error:
        raise Unanswerable(str(error)) from None
