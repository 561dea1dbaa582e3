"""SAD and BPR: given parameters, and files. Fitting is in fitting, what can be asked in questions, lists, newcomers."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sadrec._check import numbers
from sadrec._settings import checked
from sadrec._types import Floats
from sadrec.data._matrix import checked_seen
from sadrec.data.ids import Ids, as_id_array
from sadrec.models.base import ModelFileError, documented
from sadrec.models.files import save_model
from sadrec.models.fitted import Fitted
from sadrec.models.fitting import Fitting
from sadrec.models.shards import read_model, save_shards
from sadrec.ranking import Parameters


@documented
class SAD(Fitting):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in cycles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None are resolved by the kind of data in ``fit``; :attr:`settings` holds what was used.

    {settings}

    Examples
    --------
    >>> from sadrec import Comparisons
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "judge": ["ann"] * 3, "winner": ["rock", "scissors", "paper"], "loser": ["scissors", "paper", "rock"]
    ... })
    >>> game = Comparisons.from_frame(frame, user="judge", winner="winner", loser="loser")
    >>> model = SAD(factors=4, iterations=1000, learning_rate=0.3, rival_regularization=0.0).fit(game)
    >>> model.preference("ann", ["rock", "scissors", "paper"], ["scissors", "paper", "rock"]) > 0
    array([ True,  True,  True])
    """

    def nearest_bpr(self) -> "BPR":
        """Return the BPR model (T = 1) whose margins are nearest to this one's: the part that scores explain.

        Of each user's margins it keeps what mean margins account for; :meth:`intransitivity` is the share of the rest.
        It is not what fitting a BPR model to the same data gives: see :func:`sadrec.evaluation.compare_with_bpr`.
        """
        users = self.user_vectors()
        if self.item_bias is not None:
            return BPR.from_bpr(users, self.item_vectors(), self.users, self.items, self.seen)
        return BPR.from_factors(users, self.item_vectors(), None, None, self.users, self.items, self.seen)

    # -- given parameters, and files ----------------------------------------------------------------------------------

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

        Rival factors left out are all ones; ids (``users``, ``items``) left out are 0, 1, 2, ... ``seen`` is a sparse
        matrix (users x items) of what to leave out of recommendations.
        """
        given = {"rival_factors": rival_factors, "item_bias": item_bias}
        optional = (None if value is None else _finite(name, value) for name, value in given.items())
        parameters = Parameters(_finite("user_factors", user_factors), _finite("item_factors", item_factors), *optional)
        tau, shape = parameters.rival_factors, (parameters.n_users, parameters.n_items)
        if tau is not None and not cls._learn_rivals:
            raise ValueError("BPR has no rival factors: use SAD.from_factors")
        user_ids = Ids(np.arange(shape[0]) if users is None else as_id_array(users), what="user")
        item_ids = Ids(np.arange(shape[1]) if items is None else as_id_array(items), what="item")
        for ids, count in zip((user_ids, item_ids), shape, strict=True):
            if len(ids) != count:
                raise ValueError(f"{len(ids)} {ids.what}s are named, but the factors have {count} rows")
        model = cls(factors=parameters.n_factors)
        model._fitted = Fitted(parameters, user_ids, item_ids, checked_seen(seen, shape))
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
        """Write parameters, settings, ids and what was seen to a file; an old file stays until all is written.

        Where the users are with the workers of a cluster (see :meth:`collect`), ``path`` is a folder that all nodes
        share: each worker writes its users, and from then on the model is the one in the folder.
        """
        if self._fitted.away is None:
            save_model(path, self._fitted, *self._named_params())
            return
        away = self._fitted.away
        save_shards(path, self._fitted, *self._named_params())
        self._fitted = read_model(path, mmap=True, verify=False)[0]
        away.end()

    @classmethod
    def load(cls, path: str | Path, mmap: bool = False, *, verify: bool | None = None) -> Self:
        """Read a model from a file; nothing in the file is ever executed.

        Parameters
        ----------
        path
            Of a file or folder that :meth:`save` wrote. ``SAD.load`` reads a BPR model too, and returns one. What is
            damaged, cut short, of another kind or of a newer version raises a ModelFileError.
        mmap
            Leave the arrays in the file; the operating system reads a page when it is asked for.
        verify
            Whether to compare the content with its checksum and to check that every number is finite, which reads all
            of it; None: unless ``mmap`` is given.
        """
        fitted, name, params = read_model(path, mmap, not mmap if verify is None else verify)
        kinds: list[type[SAD]] = [SAD, *SAD.__subclasses__(), cls]
        try:
            kind = {kind.__name__: kind for kind in kinds}[name]
            if not kind._learn_rivals and fitted.parameters.rival_factors is not None:
                raise ValueError("BPR has no rival factors")
            model = kind()
            known = model.get_params()
            model.set_params(**{name: value for name, value in params.items() if name in known})
            checked(model)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelFileError(f"{str(path)!r} cannot be read as a sadrec model: {error}") from error
        if not isinstance(model, cls):
            raise ModelFileError(f"{str(path)!r} holds a {name} model, not a {cls.__name__} model")
        model._fitted = fitted
        return model


@documented
@dataclass(eq=False, repr=False)
class BPR(SAD):
    """Bayesian Personalised Ranking: SAD with all rival factors at 1, ``x_uij = <xi_u, eta_i - eta_j> [+ b_i - b_j]``.

    Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009. The same training, verbs and files as :class:`SAD`,
    whose settings it shares but for those of the rivals.

    {settings}

    Examples
    --------
    >>> import numpy as np
    >>> liked = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    >>> model = BPR(factors=4, iterations=10).fit(liked)
    >>> model.user_factors.shape, float(model.rival_factors.min())
    ((3, 4), 1.0)
    """

    _learn_rivals: ClassVar[bool] = False
    rival_regularization: None = field(default=None, init=False)
    adaptive: Literal[False] = field(default=False, init=False)


def _finite(name: str, value: ArrayLike) -> Floats:
    """Return the array as float32, refusing what is not a finite number, and rival factors below 0."""
    array = numbers(value, name, 0.0 if name == "rival_factors" else -np.inf).view()
    array.flags.writeable = False  # verbs may keep what they derive from it
    return array
