"""One Markov chain: its state, and sweeps that move it."""

from concurrent.futures import Executor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sadrec._types import Doubles
from sadrec.posterior.bias import draw_bias_prior
from sadrec.posterior.hyper import draw_prior
from sadrec.posterior.items import draw_items
from sadrec.posterior.layout import Clock, State
from sadrec.posterior.orbits import move_along_orbits
from sadrec.posterior.settings import GibbsSettings
from sadrec.posterior.triples import Triples
from sadrec.posterior.users import draw_users


class Chain:
    """The state of one chain.

    Between sweeps the state is xi, eta, tau, what is learnt of the prior and the number of sweeps: the latent margins
    are drawn anew at the beginning of each, and random numbers are functions of (seed, chain, sweep, stage, row).
    """

    def __init__(self, triples: Triples, settings: GibbsSettings, number: int):
        self.triples, self.settings, self.number = triples, settings, number
        self.sweep = 0
        prior = settings.prior()
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([settings.seed, number])))
        k = settings.factors
        user_scale, item_scale, rival_scale = prior[[0, 1, 3]] ** -0.5
        # Overdispersed: a draw of the prior, which is wider than what the data will leave.
        xi = settings.means() + user_scale * rng.standard_normal((triples.users, k))
        eta = item_scale * rng.standard_normal((triples.items, k))
        tau = np.abs(settings.rival_mean + rival_scale * rng.standard_normal((triples.items, k)))
        bias = {}
        if settings.bias:
            eta = np.column_stack((eta, rng.standard_normal(triples.items)))
            bias = {"meetings": triples.meetings, "bias_centre": np.zeros(triples.items)}
        self.state = State(settings.learnt, prior, settings.means(), xi, eta, tau, **bias)
        self._residual = np.zeros(len(triples))

    @property
    def scales(self) -> Doubles:
        """Standard deviations of the prior of xi, eta and tau, and of the bias where there is one."""
        return np.asarray(self.state.prior[[0, 1, 3, 4][: 3 + self.settings.bias]] ** -0.5)

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
            move_along_orbits(clock, state)
            if learn:
                draw_prior(clock, state)
            self.sweep += 1


def _ranges(start: NDArray[np.int64], parts: int) -> list[tuple[int, int]]:
    """Deal users into ranges with about the same number of comparisons."""
    cuts = np.searchsorted(start, np.linspace(0, start[-1], parts + 1)[1:-1]).clip(0, len(start) - 1)
    bounds = np.unique(np.concatenate(([0], cuts, [len(start) - 1]))).tolist()
    return list(pairwise(bounds))
