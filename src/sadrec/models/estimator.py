"""What fitting is: settings as given, data brought together, a training run, and what the model then knows."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sadrec.data import Comparisons, DataWarning, as_interactions
from sadrec.data.ids import IdArray
from sadrec.models import fitting
from sadrec.models.errors import NotFittedError
from sadrec.models.verbs import Fitted
from sadrec.ranking import Parameters
from sadrec.training.checkpoint import Checkpoints, fingerprint
from sadrec.training.factors import Factors, initial_factors
from sadrec.training.run import run
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures, Trainer

Callback = Callable[[int, Figures, Any], bool | None]

# What partial_fit takes besides data.
_GOING_ON = ("validation", "patience", "monitor", "callbacks", "checkpoint", "checkpoint_seconds")

# What a model has only once it is fitted.
_FITTED = ("parameters", "user_ids", "item_ids", "seen", "history", "_settings")


class Estimator(Fitted):
    """A model that learns; :class:`~sadrec.SAD` and :class:`~sadrec.BPR` say with which settings."""

    _learn_rivals: bool
    factors: int
    random_state: int | np.random.Generator | None
    history: list[Figures]
    """The figures of every epoch of the last fit."""

    # -- settings -----------------------------------------------------------------------------------------------------

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

    # -- learning -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        show_progress: bool = True,
        *,
        comparisons: Comparisons | None = None,
        weights: Any = None,
        dislikes: Any = None,
        warm_start: "Estimator | None" = None,
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
        is not drawn as a rival and stays out of recommendations. On a model that was never fitted this is ``fit``.

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
        if odd := sorted(set(options) - set(_GOING_ON)):
            raise TypeError(
                f"partial_fit does not take {odd[0]!r} (it takes {', '.join(_GOING_ON)}): give it to "
                "fit(..., warm_start=model)"
            )
        data = data if isinstance(data, Comparisons) else as_interactions(data)
        found = fitting.lesson(data, users=self.users, items=self.items)
        seen_before = None
        if self.seen is not None:
            if found.matrix is not None:
                found = fitting.beside_seen(found, self.seen)
            else:
                seen_before = fitting.enlarged(self.seen, len(found.users), len(found.items))
        return self._learn(
            found,
            self._checked(),
            show_progress=show_progress,
            settings_before=self._settings,
            seen_before=seen_before,
            **options,
        )

    def _learn(
        self,
        found: fitting.Lesson,
        start: Parameters | None,
        *,
        show_progress: bool,
        settings_before: Settings | None = None,
        seen_before: Any = None,
        validation: Any = None,
        patience: int | None = None,
        monitor: str = "validation_log_likelihood",
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 0.0,
    ) -> Self:
        seed = _seed(self.random_state)
        given = fitting.as_before(self.get_params(), start, settings_before)
        settings = fitting.resolve(given, found, self._learn_rivals, seed)
        threads = checked_threads(self.num_threads)
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
            threads,
        )
        checkpoints = None
        if checkpoint is not None:
            identity = {
                "class": type(self).__name__,
                "data": found.fingerprint(),
                "settings": settings.as_dict(),
                "start": fingerprint(factors.users, factors.items, factors.bias),
                "validation": None if held_out is None else fingerprint(held_out.user, held_out.winner, held_out.loser),
                "stopping": [patience, monitor],
            }
            checkpoints = Checkpoints(checkpoint, identity, checkpoint_seconds)
        before = dict(self.__dict__)
        self.user_ids, self.item_ids = found.users, found.items
        self.seen = seen_before if found.matrix is None else fitting.marked(found)
        self._settings, self.history = settings, []
        self._show(factors)

        def after_epoch(epoch: int, figures: Figures) -> bool:
            self._show(factors)
            answers = [callback(epoch, figures, self) for callback in callbacks]
            return any(answers)

        try:
            run(
                trainer,
                after_epoch=after_epoch,
                validation=held_out,
                patience=patience,
                monitor=monitor,
                checkpoints=checkpoints,
                show_progress=show_progress,
                title=type(self).__name__,
                history=self.history,
            )
        except BaseException:
            if trainer.epoch:
                self._show(factors, finished=True)
            else:  # nothing was learnt: the model is what it was before
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        self._show(factors, finished=True)
        if self.history and not any(figures["updates"] for figures in self.history):
            warnings.warn(
                "nothing was learnt: no user has both an item (of a weight above 0) and one that they did not touch",
                DataWarning,
                stacklevel=3,
            )
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
        if start.rival_factors is not None:
            if fresh.tau is None:
                raise ValueError("a SAD model cannot start a BPR model: its rival factors would be lost")
            fresh.tau[: start.n_items] = start.rival_factors
        if start.item_bias is not None:
            if fresh.bias is None:
                raise ValueError("the model to start from has a bias: set bias=True")
            fresh.bias[: start.n_items] = start.item_bias
        fresh.users[: len(start.user_factors)] = start.user_factors
        fresh.eta[: start.n_items] = start.item_factors
        return fresh

    def _show(self, factors: Factors, finished: bool = False) -> None:
        """Take the factors as parameters, as views; when training is over nobody writes to them any more."""
        if finished:
            for array in (factors.users, factors.items, factors.bias):
                if array is not None:
                    array.flags.writeable = False
        self.parameters = Parameters(factors.users, factors.eta, factors.tau, factors.bias)

    # -- what was learnt ----------------------------------------------------------------------------------------------

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


def checked_threads(num_threads: Any) -> int:
    """Return the number of threads asked for, refusing what is none."""
    if isinstance(num_threads, bool) or not isinstance(num_threads, (int, np.integer)) or num_threads < 0:
        raise ValueError(f"num_threads must be a whole number, 0 (all cores) or more, not {num_threads!r}")
    return int(num_threads)


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
