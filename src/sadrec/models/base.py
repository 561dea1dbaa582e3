"""The contract of every model of the package: SAD, BPR, GibbsSAD, Popularity, EASE."""

import difflib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from sadrec._core.files import FileFormatError
from sadrec._core.settings import declared, described, members
from sadrec.data.ids import IdArray, Ids

Model = TypeVar("Model")


class NotFittedError(ValueError, AttributeError):
    """The model is not fitted yet."""


class ModelFileError(FileFormatError):
    """A model file is damaged, cut short, of another kind or of a newer version."""


class Estimator(ABC):
    """A model with settings, which learns from data and then answers questions about users and items by their ids.

    A model is a dataclass (``@dataclass(eq=False, repr=False)``) whose fields are its settings, each declared by
    :func:`sadrec._core.settings.setting`; the decorator :func:`documented` lists them in its docstring.
    """

    _fitted_attributes: ClassVar[tuple[str, ...]] = ("user_ids", "item_ids")
    """The attributes that a model has only once it is fitted; the first tells whether it is."""

    if TYPE_CHECKING:  # a model has these as properties, or as attributes that it annotates (``user_ids: Ids``)

        @property
        def user_ids(self) -> Ids: ...  # noqa: D102
        @property
        def item_ids(self) -> Ids: ...  # noqa: D102

    # -- settings -----------------------------------------------------------------------------------------------------

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Refuse unknown settings; the error of Python's own would name an internal class."""
        names = declared(cls)
        owner = next(kind for kind in cls.__mro__ if "__init__" in vars(kind))
        if "__dataclass_fields__" not in vars(owner):  # a constructor of its own
            return super().__new__(cls)
        for name in settings:
            if name not in names:
                raise TypeError(unknown_setting(name, cls))
        positional = [name for name, entry in names.items() if not entry.kw_only]
        if len(given) > len(positional):
            raise TypeError(
                f"{cls.__name__} takes {' and '.join(positional) or 'nothing'} without a name, and {len(given)} values "
                "are given: name the settings, as in factors=64"
            )
        return super().__new__(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as they were given (scikit-learn's convention)."""
        return {name: getattr(self, name) for name in declared(self)}

    def set_params(self, **settings: Any) -> Self:
        """Change settings and return the model; the next ``fit`` uses them.

        Those in a mapping of settings (``advanced``) go by their own names as well.
        """
        names = declared(self)
        inside = {key: name for name, entry in names.items() for key in members(entry)}
        for name in settings:
            if name not in names and name not in inside:
                raise ValueError(unknown_setting(name, type(self)))
        for name, value in settings.items():
            if name in inside:
                name, value = inside[name], {**(getattr(self, inside[name]) or {}), name: value}
            setattr(self, name, value)
        return self

    def clone(self, **settings: Any) -> Self:
        """Return a model that is not fitted, with the same settings but for those given here."""
        return type(self)(**self.get_params()).set_params(**settings)

    def __repr__(self) -> str:
        given = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if declared(self)[name].default is MISSING or value != declared(self)[name].default
        )
        return f"<{type(self).__name__}({', '.join(given)}){self._repr_end()}>"

    def _repr_end(self) -> str:
        """Return what ``repr`` says after the settings."""
        return "" if self.is_fitted else ", not fitted"

    # -- what was learnt ----------------------------------------------------------------------------------------------

    @property
    def is_fitted(self) -> bool:
        """Whether the model is fitted."""
        return self._fitted_attributes[0] in self.__dict__ or "_making" in self.__dict__

    def _make_later(self, making: Callable[[], Any]) -> None:
        """Have the state made when a question, or a copy of the model, needs it."""
        self.__dict__["_making"] = making

    def _forget(self) -> None:
        """Drop the state: the model is unfitted afterwards."""
        for name in ("_making", *self._fitted_attributes):
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        if "_making" in self.__dict__:
            getattr(self, self._fitted_attributes[0])
        return {name: value for name, value in self.__dict__.items() if name != "_making"}

    if not TYPE_CHECKING:  # or a checker would take every misspelt verb for one that is there

        def __getattr__(self, name: str) -> Any:
            # Only reached when an attribute is missing, or a property that needs one: before fit, these are.
            making = self.__dict__.get("_making")
            if making is not None and name == self._fitted_attributes[0]:
                self.__dict__[name] = making()
                return self.__dict__[name]
            if name in self._fitted_attributes or (not self.is_fitted and hasattr(type(self), name)):
                raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def users(self) -> IdArray:
        """The users' ids, in row order."""
        return self.user_ids.array

    @property
    def items(self) -> IdArray:
        """The items' ids, in row order."""
        return self.item_ids.array

    # -- what every model does ----------------------------------------------------------------------------------------

    @abstractmethod
    def fit(self, data: Any, show_progress: bool = True) -> Self:
        """Learn from data, and return the model."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote. Nothing in it is executed."""


def unknown_setting(name: str, cls: type) -> str:
    """Return the error message for an unknown setting: the nearest name, and all settings of the class."""
    for group, entry in declared(cls).items():
        if name in members(entry):
            return f"unknown setting {name!r}: {cls.__name__} takes it as {group}={{{name!r}: ...}}"
    settings = list(declared(cls))
    near = difflib.get_close_matches(name, settings, 1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown setting {name!r}: {meant}{cls.__name__} has {', '.join(settings) or 'none'}"


def documented(cls: type[Model]) -> type[Model]:
    """Replace ``{settings}`` in the docstring of a class by its declared settings."""
    cls.__doc__ = inspect.cleandoc(cls.__doc__ or "").replace("{settings}", described(cls))
    return cls
