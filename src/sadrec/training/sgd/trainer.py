"""Epochs of stochastic gradient ascent: schedules over the cells, on any number of threads, with the same bits."""

import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sadrec._core.record import Arrays
from sadrec._core.types import Doubles, Floats
from sadrec.training.loop import Figures, diverged
from sadrec.training.settings import RIVALS_REST, Settings
from sadrec.training.sgd import schedule
from sadrec.training.sgd.factors import Factors
from sadrec.training.sgd.given import Buffers, Pairs, arrange, cells_of, rounds_of, train_given
from sadrec.training.sgd.negatives import Deal, Positives, Spread, deal, train_pairwise
from sadrec.training.sgd.pairwise import Centre, Penalties
from sadrec.training.sgd.samplers import PairSource
from sadrec.training.sgd.softmax import SoftmaxWork, put_rows_to_length, train_softmax
from sadrec.training.validation import HeldOut, validation_figures

Work = Iterator[tuple[Any, Doubles]]  # what a kernel works on in one sub-epoch after another, and the figures it writes


class Pass(NamedTuple):
    """What a kernel does in an epoch, with sampled negatives or on given pairs."""

    kernel: Callable[..., None]
    work: Work
    cells: list[schedule.Cells]  # of every sub-epoch


# Adaptive l1: an entry of tau is held to 1 by l1 / max(|tau - 1|, FLOOR)^GAMMA, at most CAP times l1, with l1 halved.
ADAPTIVE_FLOOR, ADAPTIVE_GAMMA, ADAPTIVE_CAP, ADAPTIVE_SHARE = 0.02, 2.0, 50.0, 0.5

_NO_CENTRE: Centre = (None, None, None)

# Entries of tau this close to 1 count as 1 (the paper's definition of sparsity).
SPARSE = 0.05


class Snapshot:
    """A copy of factors in a nameless temporary file, which vanishes with the process; and the state of the trainer.

    In memory it would double what the parameters take. Where nothing can be written it is held in memory after all.
    """

    def __init__(self, factors: Factors, epoch: int = 0, l1_weights: Floats | None = None):
        self.epoch, self.l1_weights = epoch, l1_weights
        self._copy: Factors | None = None
        try:
            self._file = tempfile.TemporaryFile(prefix="sadrec-")  # noqa: SIM115
            weakref.finalize(self, _close, self._file)  # with the object, and without Python's warning that it was open
            for array in factors.arrays:
                self._file.write(array.data.cast("B"))
            self._file.flush()
        except OSError:
            self._copy = factors.copy()

    def put_into(self, factors: Factors) -> Factors:
        """Write the copy into factors of the same shapes, in place, and return them."""
        if self._copy is not None:
            factors.assign(self._copy)
            return factors
        self._file.seek(0)
        for array in factors.arrays:
            self._file.readinto(array.data.cast("B"))
        return factors


def _close(file: Any) -> None:
    """Close a file that is not needed any more, whatever could not be written to it."""
    with suppress(OSError):
        file.close()


class Trainer:
    """Epochs of gradient ascent, a :class:`~sadrec.training.loop.Step`, which change the factors in place.

    ``positives`` are trained against drawn negatives; one of weight 0 is known, so never drawn as a negative, but not
    trained on. ``sources`` give pairs. ``centre`` gives what features predict, ``make`` returns the state of a model.
    The number of threads does not change the result.
    """

    keeps: Literal["best", "last"] = "best"
    settled = 0

    def __init__(
        self,
        factors: Factors,
        settings: Settings,
        positives: Positives | None = None,
        sources: list[PairSource] | None = None,
        num_threads: int = 0,
        centre: Callable[[Factors], Centre] | None = None,
        validation: Pairs | HeldOut | None = None,
        make: Callable[[bool], Any] = lambda finished: None,
    ):
        self.factors = factors
        self.settings = settings
        self.done = 0
        self.ready = True  # no thread is at work on the factors
        self.l1_weights: Floats | None = None
        self._positives = positives
        self._sources = sources or []
        self._centre = centre
        self._threads = num_threads or os.cpu_count() or 1
        self._place: NDArray[Any] | None = None
        self._room = Buffers() if sources else None
        self._validation, self._make = validation, make
        self._at_one = factors.tau is None or bool((factors.tau == 1).all())

    @property
    def total(self) -> int:
        """The number of epochs in all."""
        return self.settings.iterations

    @property
    def judged(self) -> bool:
        """Whether there is held-out data."""
        return self._validation is not None

    def advance(self, check: Callable[[], None]) -> Figures:
        """Train one epoch and return its figures."""
        figures = self.train_epoch(check)
        if not self.factors.finite():
            raise diverged(self.settings, self.done)
        return figures

    def judge(self) -> Figures:
        """Return mean log likelihood and accuracy on the held-out data."""
        return {} if self._validation is None else validation_figures(self.factors, self._validation)

    def snapshot(self) -> Snapshot:
        """Return a copy of the factors, out of memory."""
        return Snapshot(self.factors, self.done, self.l1_weights)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        snapshot.put_into(self.factors)
        self.done, self.l1_weights = snapshot.epoch, snapshot.l1_weights

    def record(self, snapshot: Snapshot | None = None) -> tuple[dict[str, Any], Arrays]:
        """Return the factors now, with the weights of adaptive training, or those of a snapshot alone."""
        factors = self.factors if snapshot is None else snapshot.put_into(self.factors.copy())
        weights = self.l1_weights if snapshot is None else None
        arrays = {"users": factors.users, "items": factors.items, "bias": factors.bias, "l1_weights": weights}
        return {}, {name: array for name, array in arrays.items() if array is not None}

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Restore what :meth:`record` returned; raise on values that compiled code cannot take."""
        like, weights = self.factors, arrays.get("l1_weights")
        if weights is not None and weights.min(initial=0) < 0:
            raise ValueError("some l1_weights are below 0")
        bias = None if like.bias is None else _fitting(arrays["bias"], like.bias)
        factors = Factors(_fitting(arrays["users"], like.users), _fitting(arrays["items"], like.items), bias)
        weights = None if weights is None or like.tau is None else _fitting(weights, like.tau)
        like.assign(factors)
        self.done, self.l1_weights = int(values["epoch"]), weights

    def learnt(self, finished: bool = False) -> Any:
        """Return the state of a model; when it is finished, nothing is kept but the factors."""
        if finished:
            self.close()
        return self._make(finished)

    def close(self) -> None:
        """Release everything but the factors."""
        self._positives, self._sources, self._place, self._room, self._centre = None, [], None, None, None

    def train_epoch(self, between: Callable[[], None] = lambda: None) -> Figures:
        """Train one epoch and return its figures.

        They are ``log_likelihood`` (mean of log sigmoid(x) over the triples, each before its step), ``updates``,
        ``skipped``, ``seconds``, ``updates_per_second``, ``learning_rate`` (at the start), ``user_norm``, ``item_norm``
        (root mean square of an entry) and, when rivals are learnt, ``sparsity`` (share of tau at 1) and
        ``rival_spread`` (root mean square of tau - 1). ``between`` is called between sub-epochs, when no thread is at
        work; what it raises ends the epoch.
        """
        began = time.perf_counter()
        centre = _NO_CENTRE if self._centre is None else self._centre(self.factors)
        if starts_second_phase(self.settings, self.done):
            self.l1_weights = adaptive_weights(self.factors)
        if self.settings.length and (self.done == 0 or self._sources):  # given pairs leave the length free
            put_rows_to_length(self.factors, self.settings.length)
        first_rate = rate_at(self.settings, self.done, 0.0)
        rests = self._at_one and rivals_rest(self.settings, self.done)
        penalties = penalties_of(self.settings, self.l1_weights, centre, rests)
        with self._workers() as spread:
            figures: list[Doubles] = []  # each pass appends the array that its kernel writes
            passes = [] if self._positives is None else [self._pass_over_negatives(self._positives, spread, figures)]
            passes += [self._pass_over_pairs(figures)] if self._sources else []
            plan = schedule.interleave(*(one.cells for one in passes))
            for position, (which, cells) in enumerate(plan):
                between()
                rate = rate_at(self.settings, self.done, position / len(plan))
                data, written = next(passes[which].work)
                kernel = passes[which].kernel
                run_cells(kernel, cells, data, self.factors, penalties, rate, written, spread, self._threads)
        self.done += 1
        seconds = time.perf_counter() - began
        return {**epoch_figures(np.concatenate(figures), first_rate, seconds), **size_of(self.factors)}

    def _pass_over_negatives(self, positives: Positives, spread: Spread, figures: list[Doubles]) -> Pass:
        """Deal the positives for this epoch, and return the pass that trains them against negatives."""
        settings = self.settings
        how = settings.blocks, candidates_of(settings), settings.seed, self.done
        dealt = deal(positives, len(self.factors.items), *how, self._place, spread)
        self._place = dealt.place
        figures.append(np.zeros((settings.blocks**2, 3)))
        kernel, work = kernel_for_negatives(dealt, settings)
        return Pass(kernel, repeat((work, figures[-1])), schedule.drawn_negatives(settings.blocks))

    def _pass_over_pairs(self, figures: list[Doubles]) -> Pass:
        """Return the pass over the given pairs, with the sub-epochs of all rounds."""
        shards = max(self.settings.blocks // 2, 1)
        rounds = rounds_of(sum(source.count for source in self._sources), shards)
        sub_epochs = schedule.given_pairs(shards)
        return Pass(train_given, self._rounds(rounds, shards, len(sub_epochs), figures), rounds * sub_epochs)

    def _rounds(self, rounds: int, shards: int, sub_epochs: int, figures: list[Doubles]) -> Work:
        """Draw and arrange the given pairs of this epoch, round by round, each when the one before is done."""
        factors, seed, epoch = self.factors, self.settings.seed, self.done
        for number, part in enumerate(np.random.default_rng((seed, epoch, 2)).permutation(rounds).tolist()):
            drawn = [source.pairs(seed, epoch, part, rounds) for source in self._sources]
            pairs = Pairs.concatenate(drawn, self._room)
            arranged = arrange(pairs, len(factors.users), len(factors.items), shards, seed, epoch, number, self._room)
            figures.append(np.zeros((cells_of(shards), 3)))
            yield from repeat((arranged, figures[-1]), sub_epochs)

    @contextmanager
    def _workers(self) -> Iterator[Spread]:
        """Yield a ``map`` that calls a function on all threads."""
        if self._threads == 1:
            yield map
            return
        self.ready = False
        pool = ThreadPoolExecutor(self._threads)
        try:
            yield pool.map
        finally:
            join(pool)
            self.ready = True


def _fitting(array: Any, like: Floats) -> Floats:
    """Return a copy in memory, refusing another shape or type and what is not a finite number."""
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{array.dtype} numbers of shape {array.shape} where {like.dtype} of {like.shape} are needed")
    if not np.isfinite(array).all():
        raise ValueError("some numbers are not finite")
    return np.array(array)


def run_cells(
    kernel: Callable[..., None],
    cells: schedule.Cells,
    data: Any,
    factors: Factors,
    penalties: Penalties,
    rate: float,
    written: Doubles,
    spread: Spread,
    threads: int,
) -> None:
    """Train the cells of a sub-epoch: each thread claims cell after cell until none is left."""
    claimed = np.zeros(1, np.int64)  # the number of cells that threads have begun
    same = (cells, claimed, data, factors, penalties, rate, written)
    try:
        list(spread(kernel, *(repeat(value, min(threads, len(cells))) for value in same)))
    except BaseException:
        claimed[0] = len(cells)  # threads stop after the cell they are at
        raise


def first_phase(settings: Settings) -> int:
    """Return the number of epochs of the first phase; adaptive training has a second one, at most as long."""
    epochs = settings.iterations
    return epochs - epochs // 2 if settings.adaptive and settings.learn_rivals else epochs


def starts_second_phase(settings: Settings, epoch: int) -> bool:
    """Whether an epoch is the first of the second phase of adaptive training."""
    return epoch == first_phase(settings) < settings.iterations


def rate_at(settings: Settings, epoch: int, through: float) -> float:
    """Return the learning rate when this share of the epoch is done."""
    rate = settings.learning_rate
    if settings.schedule == "constant":
        return rate
    first = first_phase(settings)
    begin, end = (0, first) if epoch < first else (first, settings.iterations)
    return rate * (1.0 - (epoch - begin + through) / max(end - begin, 1))


def rivals_rest(settings: Settings, epoch: int) -> bool:
    """Whether T stays at 1 in this epoch: with many negatives, for two thirds of the fit, or all of it.

    Until then products are half as wide. What vectors learn without T decides what T has to add.
    """
    if settings.loss != "softmax" or settings.adaptive:
        return False
    return settings.rival_regularization >= RIVALS_REST or epoch < 2 * settings.iterations // 3


def penalties_of(
    settings: Settings, l1_weights: Floats | None, centre: Centre = _NO_CENTRE, rests: bool = False
) -> Penalties:
    """Return the penalties of an epoch; ``rests`` says that T stays at 1."""
    if rests or not settings.learn_rivals:
        return Penalties(settings.regularization, None, None, *centre)
    share = 1.0 if l1_weights is None else ADAPTIVE_SHARE
    return Penalties(settings.regularization, share * settings.rival_regularization, l1_weights, *centre)


def candidates_of(settings: Settings) -> int:
    """Return how many negatives are drawn for each positive; with a softmax, positives share them."""
    return 0 if settings.loss == "softmax" else settings.negative_candidates


def kernel_for_negatives(dealt: Deal, settings: Settings) -> tuple[Callable[..., None], Any]:
    """Return the kernel that trains against sampled negatives, and what it works on."""
    if settings.loss == "softmax":
        return train_softmax, SoftmaxWork(dealt, settings.negatives, settings.length)
    return train_pairwise, dealt


def epoch_figures(cells: Doubles, learning_rate: float, seconds: float) -> Figures:
    """Return the figures of an epoch from those of its cells."""
    updates, skipped, likelihood = cells.sum(axis=0)
    return {
        "log_likelihood": float(likelihood / max(updates, 1)),
        "updates": float(updates),
        "skipped": float(skipped),
        "learning_rate": learning_rate,
        "seconds": seconds,
        "updates_per_second": float(updates / seconds),
    }


def adaptive_weights(factors: Factors) -> Floats:
    """Return, from a first phase of training, how strongly each entry of tau is held to 1 in the second.

    Zou (2006), The adaptive lasso: entries that left 1 by much are hardly held, the rest firmly.
    """
    if factors.tau is None:
        raise ValueError("adaptive weights need learnt rivals")
    away = np.maximum(np.abs(factors.tau - 1), ADAPTIVE_FLOOR)
    return np.minimum(away**-ADAPTIVE_GAMMA, ADAPTIVE_CAP).astype(np.float32)


def size_of(factors: Factors) -> Figures:
    """Return the figures of the size of the parameters."""

    def root_mean_square(array: Floats) -> float:
        return float(np.sqrt(np.einsum("ij,ij->", array, array, dtype=np.float64) / max(array.size, 1)))

    figures = {"user_norm": root_mean_square(factors.users), "item_norm": root_mean_square(factors.eta)}
    if factors.tau is not None:
        away = factors.tau - 1
        np.abs(away, out=away)
        figures["sparsity"] = float(np.mean(away < SPARSE))
        figures["rival_spread"] = root_mean_square(away)
    return figures


def join(pool: Executor) -> None:
    """End a pool when no thread of it is at work any more, however often that is interrupted; then raise the last."""
    interruption: BaseException | None = None
    while True:
        try:
            pool.shutdown(wait=True, cancel_futures=True)
            break
        except BaseException as error:
            interruption = error
    if interruption is not None:
        raise interruption
