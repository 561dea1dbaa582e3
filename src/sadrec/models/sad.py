"""SAD and BPR: settings, fit, and the parameters that come of it."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sadrec.data import Comparisons, as_interactions
from sadrec.data.ids import IdArray, Ids, as_id_array
from sadrec.models import fitting
from sadrec.models.errors import ModelFileError, NotFittedError
from sadrec.models.files import load_model, save_model
from sadrec.models.recommending import RecommendVerbs
from sadrec.models.verbs import PairVerbs
from sadrec.ranking import Parameters
from sadrec.training.checkpoint import Checkpoints, fingerprint
from sadrec.training.factors import Factors, extended, initial_factors, packed
from sadrec.training.run import run
from sadrec.training.settings import NegativeSampling, Schedule, Settings
from sadrec.training.trainer import Figures, Trainer

Callback = Callable[[int, Figures, Any], bool | None]

# What a model has only once it is fitted.
_FITTED = ("parameters", "user_ids", "item_ids", "seen", "history", "_settings")


class SAD(PairVerbs, RecommendVerbs):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in circles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None are resolved by the kind of data in ``fit``; :attr:`settings` holds what was used.

    Parameters
    ----------
    factors
        The length k of the vectors.
    iterations
        Epochs; each visits every interaction or comparison once. Adaptive training runs twice as many.
    learning_rate
        Of the first step; see ``schedule``.
    regularization
        l2 on user factors, item factors and bias (the paper's w2: a step subtracts ``2 w2 theta``).
    rival_regularization
        l1 that holds the rival factors to 1 (the paper's w1). The larger, the more of them are exactly 1.
    blocks
        Into how many blocks the items are dealt every epoch. The result depends on it, unlike on ``num_threads``.
    num_threads
        0 means all cores. The result is the same, bit by bit, for any number.
    random_state
        A whole number, a numpy generator, or None for a seed from the operating system.
    order_share
        The share of training pairs drawn from the order of the user's own ratings, 0 to 1; the rest are interacted
        over not interacted.
    negative_candidates
        Train against the hardest of so many drawn rivals; 1 takes the rival as it is drawn.
    bias
        Whether items have a bias ``b_i - b_j``, the same for everybody.
    adaptive
        A second phase of training in which each rival factor is held to 1 by as much as the first phase suggests.
    schedule
        "linear" lets the learning rate fall to zero, "constant" keeps it.
    init_scale
        Standard deviation of the first factors. Rival factors start at 1.
    negative_sampling
        How rivals are drawn from what a user has not touched: "uniform", or "popular" (in proportion to popularity).

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

    _learn_rivals = True
    history: list[Figures]
    """The figures of every epoch of the last fit."""

    def __init__(
        self,
        factors: int = 64,
        iterations: int | None = None,
        learning_rate: float | None = None,
        regularization: float | None = None,
        rival_regularization: float | None = None,
        blocks: int | None = None,
        num_threads: int = 0,
        random_state: int | np.random.Generator | None = 0,
        order_share: float = 0.0,
        negative_candidates: int | None = None,
        bias: bool | None = None,
        adaptive: bool = False,
        schedule: Schedule = "linear",
        init_scale: float | None = None,
        negative_sampling: NegativeSampling = "uniform",
    ):
        self.factors = factors
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.rival_regularization = rival_regularization
        self.blocks = blocks
        self.num_threads = num_threads
        self.random_state = random_state
        self.order_share = order_share
        self.negative_candidates = negative_candidates
        self.bias = bias
        self.adaptive = adaptive
        self.schedule = schedule
        self.init_scale = init_scale
        self.negative_sampling = negative_sampling

    # -- settings ---------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as they were given (scikit-learn's convention)."""
        return {
            name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"
        }

    def set_params(self, **settings: Any) -> Self:
        """Change settings and return the model; they count from the next ``fit`` on."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"unknown setting {name!r}: {type(self).__name__} has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        state = "" if self._is_fitted() else ", not fitted"
        return f"<{type(self).__name__}({given}){state}>"

    # -- learning ---------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        show_progress: bool = True,
        *,
        comparisons: Comparisons | None = None,
        weights: Any = None,
        dislikes: Any = None,
        warm_start: "SAD | None" = None,
        validation: Any = None,
        patience: int | None = None,
        monitor: str = "validation_log_likelihood",
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 0.0,
    ) -> Self:
        """Learn from what people did or said, and return the model.

        Parameters
        ----------
        data
            Interactions (or a frame, a sparse or dense matrix, a path), or Comparisons.
        show_progress
            Whether to show a progress bar on a terminal.
        comparisons
            Comparisons to learn from beside interactions.
        weights
            How much each interaction counts, in the order of ``data.matrix``. Weight 0: known, so never drawn as a
            rival, but not learnt from.
        dislikes
            What people disliked: a number (ratings below it), or interactions of their own (skips, thumbs down). A
            disliked item loses to what the user likes and to what they do not know, and is never recommended to them.
        warm_start
            A fitted model to start from; users and items it does not know are appended to its own.
        validation
            Held-out data of the same kind: its figures are shown, and the best epoch is kept.
        patience
            Stop when ``monitor`` has not risen for so many epochs.
        monitor
            The figure to watch: "validation_log_likelihood" or "validation_accuracy".
        callbacks
            Called as ``f(epoch, figures, model)`` after each epoch, the model being usable; True stops the fit.
        checkpoint
            A folder. Killed and run again with the same arguments, the fit goes on from there and ends with the same
            bits as an undisturbed one.
        checkpoint_seconds
            Write a checkpoint at most so often; 0 writes one after every epoch.

        Raises
        ------
        DivergedError
            When the parameters leave the finite numbers; the model is left at the last good epoch.
        """
        data = data if isinstance(data, Comparisons) else as_interactions(data)
        start = None if warm_start is None else warm_start._checked()
        ids = (None, None) if warm_start is None else (warm_start.users, warm_start.items)
        if dislikes is not None and not isinstance(dislikes, (int, float)):
            dislikes = as_interactions(dislikes)
        found = fitting.lesson(data, comparisons, weights, dislikes, *ids)
        return self._learn(
            found,
            start,
            show_progress=show_progress,
            validation=validation,
            patience=patience,
            monitor=monitor,
            callbacks=callbacks,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
        )

    def partial_fit(self, data: Any, show_progress: bool = True, **options: Any) -> Self:
        """Go on from what the model has learnt, with new interactions or comparisons.

        Users and items the model does not know are appended. Only the new data is trained on, but what was seen before
        is not drawn as a rival. On a model that was never fitted this is ``fit``.

        Parameters
        ----------
        data
            As for :meth:`fit`.
        show_progress
            Whether to show a progress bar.
        **options
            ``validation``, ``patience``, ``monitor``, ``callbacks``, ``checkpoint`` and ``checkpoint_seconds``, as for
            :meth:`fit`.
        """
        if not self._is_fitted():
            return self.fit(data, show_progress, **options)
        data = data if isinstance(data, Comparisons) else as_interactions(data)
        found = fitting.lesson(data, users=self.users, items=self.items)
        if found.matrix is not None and self.seen is not None:
            found = fitting.beside_seen(found, self.seen)
        return self._learn(found, self._checked(), show_progress=show_progress, **options)

    def _learn(
        self,
        found: fitting.Lesson,
        start: Parameters | None,
        *,
        show_progress: bool,
        validation: Any = None,
        patience: int | None = None,
        monitor: str = "validation_log_likelihood",
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 0.0,
    ) -> Self:
        seed = _seed(self.random_state)
        settings = fitting.resolve(self.get_params(), found, self._learn_rivals, seed)
        if not isinstance(self.num_threads, int) or self.num_threads < 0:
            raise ValueError(f"num_threads must be 0 (all cores) or more, not {self.num_threads!r}")
        factors = self._first_factors(found, settings, start)
        held_out = None
        if validation is not None:
            validation = validation if isinstance(validation, Comparisons) else as_interactions(validation)
            held_out = fitting.validation_pairs(validation, found, seed)
        trainer = Trainer(
            factors,
            settings,
            fitting.positives(found, settings),
            fitting.sources(found, settings),
            self.num_threads,
        )
        checkpoints = None
        if checkpoint is not None:
            identity = {
                "class": type(self).__name__,
                "data": found.fingerprint(),
                "settings": settings.as_dict(),
                "start": fingerprint(factors.users, factors.items, factors.bias),
                "validation": None if held_out is None else fingerprint(held_out.user, held_out.winner),
                "stopping": [patience, monitor],
            }
            checkpoints = Checkpoints(checkpoint, identity, checkpoint_seconds)
        before = dict(self.__dict__)
        self._hold(factors, found.users, found.items, found.matrix, settings)

        def after_epoch(epoch: int, figures: Figures) -> bool:
            self.history.append(figures)
            answers = [callback(epoch, figures, self) for callback in callbacks]
            return any(answers)

        try:
            history = run(
                trainer,
                after_epoch=after_epoch,
                validation=held_out,
                patience=patience,
                monitor=monitor,
                checkpoints=checkpoints,
                show_progress=show_progress,
                title=type(self).__name__,
            )
        except BaseException:
            if not trainer.epoch:  # nothing was learnt: the model is what it was before
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        self.history = history
        return self

    def _first_factors(self, found: fitting.Lesson, settings: Settings, start: Parameters | None) -> Factors:
        """Return the factors to start from: small random ones, behind those of the model to start from."""
        fresh = initial_factors(
            len(found.users),
            len(found.items),
            settings.factors,
            settings.init_scale,
            settings.learn_rivals,
            settings.bias,
            settings.seed,
        )
        if start is None:
            fitting.still(fresh, found)
            return fresh
        if start.n_factors != settings.factors:
            raise ValueError(
                f"a model with {start.n_factors} factors cannot start one with {settings.factors}: set factors to "
                f"{start.n_factors}"
            )
        tau = start.rival_factors
        if settings.learn_rivals and tau is None:
            tau = np.ones_like(start.item_factors)
        elif not settings.learn_rivals and tau is not None:
            raise ValueError("a SAD model cannot start a BPR model: its rival factors would be lost")
        bias = start.item_bias
        if settings.bias and bias is None:
            bias = np.zeros(start.n_items, np.float32)
        elif not settings.bias and bias is not None:
            raise ValueError("the model to start from has a bias: set bias=True")
        return extended(packed(start.user_factors, start.item_factors, tau, bias), fresh)

    def _hold(self, factors: Factors, users: Ids, items: Ids, seen: Any, settings: Settings | None) -> None:
        """Take over parameters and ids."""
        self.parameters = Parameters(factors.users, factors.eta, factors.tau, factors.bias)
        self.user_ids, self.item_ids, self.seen = users, items, seen
        self._settings = settings
        self.history = []

    # -- what was learnt --------------------------------------------------------------------------------------

    def _is_fitted(self) -> bool:
        return "parameters" in self.__dict__

    def _checked(self) -> Parameters:
        if not self._is_fitted():
            raise NotFittedError(f"this {type(self).__name__} has learnt nothing yet: call fit first")
        return self.parameters

    def __getattr__(self, name: str) -> Any:
        # Reached only when an attribute is missing, or when a property lacks one: before fit.
        if not self._is_fitted() and (name in _FITTED or hasattr(type(self), name)):
            raise NotFittedError(f"this {type(self).__name__} has learnt nothing yet: call fit first")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def settings(self) -> Settings | None:
        """The settings that ``fit`` used, with everything resolved; None for given parameters."""
        found: Settings | None = self._settings
        return found

    @property
    def user_factors(self) -> NDArray[np.float32]:
        """Xi, (users, factors)."""
        return self.parameters.user_factors

    @property
    def item_factors(self) -> NDArray[np.float32]:
        """H, (items, factors)."""
        return self.parameters.item_factors

    @property
    def rival_factors(self) -> NDArray[np.float32]:
        """T, (items, factors), not negative; all ones for BPR."""
        tau = self.parameters.rival_factors
        return np.broadcast_to(np.float32(1), self.item_factors.shape) if tau is None else tau

    @property
    def item_bias(self) -> NDArray[np.float32] | None:
        """b, (items,), or None for a model without."""
        return self.parameters.item_bias

    @property
    def users(self) -> IdArray:
        """The users' ids, in row order."""
        return self.user_ids.array

    @property
    def items(self) -> IdArray:
        """The items' ids, in row order."""
        return self.item_ids.array

    # -- given parameters, and files -------------------------------------------------------------------------

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
        model = cls(factors=parameters.n_factors)
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
        classes: dict[str, type[SAD]] = {"SAD": SAD, "BPR": BPR}
        try:
            found = classes[header["class"]]
            if not issubclass(found, cls):
                raise ValueError(f"it holds a {found.__name__} model, not a {cls.__name__} model")
            if not found._learn_rivals and "rival_factors" in arrays:
                raise ValueError("BPR has no rival factors")
            names = found().get_params()
            settings = None if header["settings"] is None else Settings.from_dict(header["settings"])
            model = found.from_factors(**arrays, seen=seen)
            model.set_params(**{name: value for name, value in header["params"].items() if name in names})
            model._settings = settings
            model.history = list(header["history"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelFileError(f"{str(path)!r} cannot be read as a sadrec model: {error}") from error
        if not isinstance(model, cls):
            raise ModelFileError(f"{str(path)!r} is not a {cls.__name__} model")
        return model


class BPR(SAD):
    """Bayesian Personalised Ranking: SAD with all rival factors at 1, ``x_uij = <xi_u, eta_i - eta_j> [+ b_i - b_j]``.

    Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009. The same training, verbs and files as :class:`SAD`,
    whose settings it shares but for those of the rivals.

    Parameters
    ----------
    factors, iterations, learning_rate, regularization, blocks, num_threads, random_state, order_share
        As for :class:`SAD`.
    negative_candidates, bias, schedule, init_scale, negative_sampling
        As for :class:`SAD`.

    Examples
    --------
    >>> import numpy as np
    >>> liked = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    >>> model = BPR(factors=4, iterations=10).fit(liked)
    >>> model.user_factors.shape, float(model.rival_factors.min())
    ((3, 4), 1.0)
    """

    _learn_rivals = False

    def __init__(
        self,
        factors: int = 64,
        iterations: int | None = None,
        learning_rate: float | None = None,
        regularization: float | None = None,
        blocks: int | None = None,
        num_threads: int = 0,
        random_state: int | np.random.Generator | None = 0,
        order_share: float = 0.0,
        negative_candidates: int | None = None,
        bias: bool | None = None,
        schedule: Schedule = "linear",
        init_scale: float | None = None,
        negative_sampling: NegativeSampling = "uniform",
    ):
        super().__init__(
            factors,
            iterations,
            learning_rate,
            regularization,
            None,
            blocks,
            num_threads,
            random_state,
            order_share,
            negative_candidates,
            bias,
            False,
            schedule,
            init_scale,
            negative_sampling,
        )


def _seed(random_state: int | np.random.Generator | None) -> int:
    """Return the whole number that all random numbers of a fit come from."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= random_state < 2**63:
            raise ValueError(f"random_state must lie between 0 and 2**63 - 1, not {random_state}")
        return int(random_state)
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    raise TypeError(f"random_state must be a whole number, a numpy Generator or None, not {random_state!r}")


def _finite(name: str, value: ArrayLike) -> NDArray[np.float32]:
    """Return the array as float32, refusing what is not a finite number."""
    array = np.asarray(value, np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers")
    return array
