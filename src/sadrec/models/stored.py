"""Models that are not learnt here: made of given parameters, or read from a file."""

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec.data.ids import Ids, as_id_array
from sadrec.models import fitting
from sadrec.models.errors import ModelFileError
from sadrec.models.estimator import Estimator, checked_threads
from sadrec.models.files import load_model, save_model
from sadrec.ranking import Parameters
from sadrec.training.settings import Settings


class Stored(Estimator):
    """Given parameters, and files."""

    _classes: ClassVar[dict[str, type["Stored"]]] = {}

    def __init_subclass__(cls) -> None:
        """Remember the class, so that a file can name it."""
        super().__init_subclass__()
        cls._classes[cls.__name__] = cls

    @classmethod
    def from_factors(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        rival_factors: ArrayLike | None = None,
        item_bias: ArrayLike | None = None,
        users: Any = None,
        items: Any = None,
        seen: Any = None,
    ) -> Self:
        """Make a model of given parameters; every verb works on it.

        Parameters
        ----------
        user_factors, item_factors, rival_factors
            (users, factors), (items, factors), (items, factors); without the last, all ones.
        item_bias
            One number per item, or None.
        users, items
            Ids; None means 0, 1, 2, ...
        seen
            Sparse matrix (users, items) of what to leave out of recommendations, or None.
        """
        xi, eta = _finite("user_factors", user_factors), _finite("item_factors", item_factors)
        tau = None if rival_factors is None else _finite("rival_factors", rival_factors)
        if tau is not None and tau.min(initial=0) < 0:
            raise ValueError(f"rival_factors must not be negative, and one is {tau.min()}")
        parameters = Parameters(xi, eta, tau, None if item_bias is None else _finite("item_bias", item_bias))
        if not cls._learn_rivals and tau is not None:
            raise ValueError("BPR has no rival factors: use SAD.from_factors")
        model = cls()
        model.factors = parameters.n_factors
        model.parameters = parameters
        model.user_ids = Ids(np.arange(parameters.n_users) if users is None else as_id_array(users), what="user")
        model.item_ids = Ids(np.arange(parameters.n_items) if items is None else as_id_array(items), what="item")
        for ids, count in ((model.user_ids, parameters.n_users), (model.item_ids, parameters.n_items)):
            if len(ids) != count:
                raise ValueError(f"{len(ids)} {ids.what}s are named, but the factors have {count} rows")
        model.seen = fitting.checked_seen(seen, (parameters.n_users, parameters.n_items))
        model._settings = None
        model.history = []
        return model

    @classmethod
    def from_bpr(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        users: Any = None,
        items: Any = None,
        seen: Any = None,
    ) -> Self:
        """Make a model of the factors of an existing BPR model, such as implicit's.

        A last column of ones among the user factors means that the last column of the item factors is a bias, which is
        how implicit keeps it.
        """
        xi, eta = _finite("user_factors", user_factors), _finite("item_factors", item_factors)
        bias = None
        if xi.ndim == 2 and xi.shape[1] > 1 and len(xi) and (xi[:, -1] == 1).all():
            bias = eta[:, -1]
            xi, eta = xi[:, :-1], eta[:, :-1]
        return cls.from_factors(xi, eta, None, bias, users, items, seen)

    def save(self, path: str | Path) -> None:
        """Write parameters, settings, ids and what was seen to a file; an old file stays until all is written."""
        parameters = self._checked()
        arrays: dict[str, Any] = {
            "user_factors": parameters.user_factors,
            "item_factors": parameters.item_factors,
            "rival_factors": parameters.rival_factors,
            "item_bias": parameters.item_bias,
            "users": self.users,
            "items": self.items,
        }
        params = {**self.get_params(), "random_state": None if self.settings is None else self.settings.seed}
        header = {
            "class": type(self).__name__,
            "params": {name: v.item() if isinstance(v, np.generic) else v for name, v in params.items()},
            "settings": None if self.settings is None else self.settings.as_dict(),
            "history": self.history,
        }
        save_model(path, {name: array for name, array in arrays.items() if array is not None}, header, self.seen)

    @classmethod
    def load(cls, path: str | Path, mmap: bool = False) -> Self:
        """Read a model from a file; nothing in the file is ever executed.

        Parameters
        ----------
        path
            Of a file that :meth:`save` wrote. ``SAD.load`` reads a BPR model too, and returns one.
        mmap
            Leave the arrays in the file and let the operating system page them in.

        Raises
        ------
        ModelFileError
            When the file is damaged, cut short, of another kind or of a newer version.
        """
        arrays, header, seen = load_model(path, mmap)
        try:
            found = cls._classes[header["class"]]
            if not issubclass(found, cls):
                raise ValueError(f"it holds a {found.__name__} model, not a {cls.__name__} model")
            if not found._learn_rivals and "rival_factors" in arrays:
                raise ValueError("BPR has no rival factors")
            names = found().get_params()
            settings = None if header["settings"] is None else Settings.from_dict(header["settings"])
            model = found.from_factors(**arrays, seen=seen)
            model.set_params(**{name: value for name, value in header["params"].items() if name in names})
            model.factors = model.parameters.n_factors
            checked_threads(model.num_threads)
            model._settings = settings
            model.history = _history(header["history"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelFileError(f"{str(path)!r} cannot be read as a sadrec model: {error}") from error
        if not isinstance(model, cls):
            raise ModelFileError(f"{str(path)!r} is not a {cls.__name__} model")
        return model


def _history(value: Any) -> list[dict[str, float]]:
    """Return the figures of every epoch, refusing what is none."""
    if not isinstance(value, list) or not all(isinstance(figures, dict) for figures in value):
        raise ValueError("its history is not a list of figures")
    return value


def _finite(name: str, value: ArrayLike) -> NDArray[np.float32]:
    """Return the array as float32, refusing what is not a finite number."""
    array = np.asarray(value, np.float32).view()
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    array.flags.writeable = False  # verbs may keep what they derive from it
    return array
