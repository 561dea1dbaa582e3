"""Markov chains: their state, sweeps that move it, and a Step of the training loop that runs several of them."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sadrec._core.memory import need, size
from sadrec._core.record import Arrays
from sadrec._core.types import Doubles
from sadrec.posterior.chain import BIAS_PRECISION, ITEM_PRECISION, RIVAL_PRECISION, USER_PRECISION, ChainState, Clock
from sadrec.posterior.draws import Draws
from sadrec.posterior.items import draw_items
from sadrec.posterior.prior import draw_bias_prior, draw_prior
from sadrec.posterior.rescaling import rescale_factors
from sadrec.posterior.settings import GibbsSettings
from sadrec.posterior.triples import SortedComparisons
from sadrec.posterior.users import draw_users
from sadrec.training.loop import DivergedError, Figures
from sadrec.training.sgd.trainer import join

logger = logging.getLogger("sadrec")

_PRECISIONS = [USER_PRECISION, ITEM_PRECISION, RIVAL_PRECISION, BIAS_PRECISION]
_ROUND_SECONDS = 0.2
"""Time of a round, after which chains wait for each other: then the bar moves and Ctrl-C is noticed."""
_WORTH_SHARING = 20_000
"""Comparisons per thread below which handing work out costs more than it saves."""


class Chain:
    """The state of one chain.

    Between sweeps the state is xi, eta, tau, what is learnt of the prior and the number of sweeps: the latent margins
    are drawn again at the beginning of each, and random numbers are functions of (seed, chain, sweep, stage, row).
    """

    def __init__(self, triples: SortedComparisons, settings: GibbsSettings, number: int):
        self.triples, self.settings, self.number = triples, settings, number
        self.sweep = 0
        prior = settings.prior()
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([settings.seed, number])))
        k = settings.factors
        user_scale, item_scale, rival_scale = prior[_PRECISIONS[:3]] ** -0.5
        # Overdispersed: a draw of the prior, which is wider than what the data will leave.
        xi = settings.means() + user_scale * rng.standard_normal((triples.users, k))
        eta = item_scale * rng.standard_normal((triples.items, k))
        tau = np.abs(settings.rival_mean + rival_scale * rng.standard_normal((triples.items, k)))
        bias = {}
        if settings.bias:
            eta = np.column_stack((eta, rng.standard_normal(triples.items)))
            bias = {"meetings": triples.meetings, "bias_centre": np.zeros(triples.items)}
        self.state = ChainState(settings.learns, prior, settings.means(), xi, eta, tau, **bias)
        self._residual = np.zeros(len(triples))

    @property
    def scales(self) -> Doubles:
        """Standard deviations of the prior of xi, eta and tau, and of the bias where there is one."""
        return np.asarray(self.state.prior[_PRECISIONS[: 3 + self.settings.bias]] ** -0.5)

    def kept_after(self, sweep: int) -> int:
        """Return how many draws are kept of the sweeps up to one."""
        return max(0, sweep - self.settings.warmup) // self.settings.thin

    def advance(self, sweeps: int, helpers: Executor | None = None, parts: int = 1) -> None:
        """Make some sweeps; ``helpers`` share the users, in ``parts`` ranges. The result does not depend on either."""
        users, items, state = self.triples.by_user, self.triples.by_item, self.state
        learn = state.learn.any()
        for _ in range(sweeps):
            clock = Clock(self.settings.seed, self.number, self.sweep + 1)
            if helpers is None or parts == 1:
                draw_users(0, self.triples.users, clock, state, users, self._residual)
            else:
                work = [
                    helpers.submit(draw_users, first, last, clock, state, users, self._residual)
                    for first, last in _ranges(users.start, parts)
                ]
                for part in work:
                    part.result()
            draw_items(clock, state, items, self._residual)
            if self.settings.bias:
                draw_bias_prior(clock, state, users, self._residual)
            rescale_factors(clock, state)
            if learn:
                draw_prior(clock, state)
            self.sweep += 1


def _ranges(start: NDArray[np.int64], parts: int) -> list[tuple[int, int]]:
    """Deal users into ranges with about the same number of comparisons."""
    cuts = np.searchsorted(start, np.linspace(0, start[-1], parts + 1)[1:-1]).clip(0, len(start) - 1)
    bounds = np.unique(np.concatenate(([0], cuts, [len(start) - 1]))).tolist()
    return list(pairwise(bounds))


def bytes_needed(settings: GibbsSettings, users: int, items: int, triples: int) -> dict[str, int]:
    """Return the memory of a run in bytes: of the draws that it keeps, and in addition while it runs."""
    numbers = (users + 2 * items) * settings.factors + items * settings.bias
    kept = settings.chains * settings.draws * (numbers + 3 + settings.bias) * 4
    running = triples * (8 + 16 + 2 * 16 + 8 * settings.chains) + settings.chains * numbers * 8
    return {"draws": kept, "running": running}


def check_memory(needed: dict[str, int]) -> None:
    """Log the memory of a run, and raise a ValueError if the machine has less."""
    logger.info("the draws will take %s of memory, and the run %s more", *map(size, needed.values()))
    remedy = "keep fewer draws (raise thin, lower draws or chains) or lower factors"
    need(sum(needed.values()), f"the sampler, whose draws take {size(needed['draws'])},", remedy)


def shares(threads: int, chains: int, triples: int) -> int:
    """Return the number of threads that share the users of one chain: threads without a chain, where they help."""
    return max(1, min(threads // chains, triples // _WORTH_SHARING))


class Sampling:
    """The sampler as a Step. One call of ``advance`` is a round: every chain makes the same number of sweeps."""

    keeps: Literal["draws"] = "draws"
    judged = False
    settled = 0

    def __init__(self, triples: SortedComparisons, settings: GibbsSettings, threads: int = 1) -> None:
        self.chains = [Chain(triples, settings, number) for number in range(settings.chains)]
        rows = triples.users, triples.items
        self.draws = Draws.empty(settings.chains, settings.draws, *rows, settings.factors, settings.bias)
        self.total = settings.sweeps
        self.ready = True
        self._parts = shares(threads, settings.chains, len(triples))
        self._pools = ThreadPoolExecutor(min(threads, settings.chains)), ThreadPoolExecutor(threads)
        self._sweeps = 1  # of the next round

    @property
    def done(self) -> int:
        """The number of sweeps that every chain has made."""
        return min(chain.sweep for chain in self.chains)

    def advance(self, check: Callable[[], None]) -> Figures:
        """Make a round of sweeps, and return how many draws each chain has now."""
        sweeps, began = min(self._sweeps, self.total - self.done), time.perf_counter()
        self.ready = False
        _turn(self.chains, self.draws, sweeps, *self._pools, self._parts)
        if not all(np.isfinite(array).all() for chain in self.chains for array in chain.state[3:6]):
            raise DivergedError("the chains diverged: choose smaller prior scales")
        self.ready = True
        spent = max(time.perf_counter() - began, 1e-6)
        self._sweeps = max(1, int(sweeps * min(2.0, _ROUND_SECONDS / spent)))
        return {"draws_per_chain": self.chains[0].kept_after(self.done)}

    def judge(self) -> Figures:
        """Return no figures: the sampler holds no data out."""
        return {}

    def snapshot(self) -> None:
        """Return None: a round is never broken off."""

    def restore(self, snapshot: None) -> None:
        """Change nothing."""

    def record(self, snapshot: None = None) -> tuple[dict[str, Any], Arrays]:
        """Return the state and the draws of every chain."""
        return {}, {f"{name}_{chain.number}": array for chain in self.chains for name, array in self._arrays(chain)}

    def load(self, values: dict[str, Any], arrays: Arrays) -> None:
        """Restore what :meth:`record` returned; of more draws than these settings keep, the first are taken."""
        sweep, places = int(values["epoch"]), []
        for chain in self.chains:
            kept = chain.kept_after(sweep)
            for name, place in self._arrays(chain, sweep):
                array = arrays[f"{name}_{chain.number}"]
                shape = (kept, *place.shape[1:]) if name.endswith("_draws") else place.shape
                if array.shape != shape or array.dtype != place.dtype:
                    raise ValueError(f"{name} has the shape {array.shape} and the type {array.dtype}")
                # A precision of the prior may be infinite, where it is so from the beginning.
                if np.isnan(array).any() or (np.isfinite(array[: len(place)]) != np.isfinite(place)).any():
                    raise ValueError(f"{name} holds numbers that are not finite")
                places.append((place, array))
        for place, array in places:
            place[...] = array[: len(place)]
        for chain in self.chains:
            chain.sweep = sweep

    def _arrays(self, chain: Chain, sweep: int | None = None) -> list[tuple[str, NDArray[Any]]]:
        """Return the state of a chain and its draws, now or after a sweep, by name."""
        kept = chain.kept_after(chain.sweep if sweep is None else sweep)
        arrays = [(name, getattr(chain.state, name)) for name in ("xi", "eta", "tau", "prior", "mean", "bias_centre")]
        # Those of one chain are contiguous, so that they are written without a copy.
        return [*arrays, *((f"{name}_draws", part[chain.number, :kept]) for name, part in vars(self.draws).items())]

    def learnt(self, finished: bool = False) -> Draws:
        """Return the draws that every chain has."""
        return self.draws.first(min(chain.kept_after(chain.sweep) for chain in self.chains))

    def close(self) -> None:
        """End the threads, when the round under way is over."""
        for pool in self._pools:
            join(pool)


def _turn(
    chains: Sequence[Chain],
    draws: Draws,
    sweeps: int,
    runners: ThreadPoolExecutor,
    helpers: ThreadPoolExecutor | None,
    parts: int,
) -> None:
    """Advance every chain by some sweeps, and keep its draws."""

    def run(chain: Chain) -> None:
        for _ in range(sweeps):
            before = chain.kept_after(chain.sweep)
            chain.advance(1, helpers, parts)
            if chain.kept_after(chain.sweep) > before:
                at = chain.number, before
                draws.user[at], draws.item[at], draws.rival[at] = chain.state.xi, chain.state.eta, chain.state.tau
                draws.scales[at] = chain.scales

    list(runners.map(run, chains))
