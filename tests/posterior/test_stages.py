"""The stages that change no preference, each alone: without data they must leave the prior as it is.

Sharper than the joint-distribution test of whole sweeps, which a term of the prior that is wrong by little may pass.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sadrec.posterior.chain import ByUser, ChainState, Clock
from sadrec.posterior.prior import draw_bias_prior, draw_prior
from sadrec.posterior.rescaling import rescale_factors

REPLICATES, TURNS, FACTORS = 3000, 10, 2
NOTHING, SCALES, MEANS = (False,) * 4, (True, True, True, False), (False, False, False, True)
ALL = (True,) * 4


def from_prior(rng, learn, mean, users, items):
    """Draw a state from the prior; ``mean`` is that of xi where it is not learnt."""
    scales = np.where(learn[:3], np.abs(rng.normal(size=3)), (0.8, 1.3, 0.7))
    means = rng.normal(size=FACTORS) if learn[3] else np.full(FACTORS, mean)
    xi = rng.normal(means, scales[0], (users, FACTORS))
    eta = rng.normal(0, scales[1], (items, FACTORS))
    tau = 1 + scales[2] * ndtri(rng.uniform(ndtr(-1 / scales[2]), 1, (items, FACTORS)))
    prior = np.array([scales[0] ** -2, scales[1] ** -2, 1.0, scales[2] ** -2])
    return ChainState(np.array(learn), prior, means, xi, eta, np.maximum(tau, 1e-12))


def functions(state):
    """Bounded functions: sizes on a logarithmic scale, and what depends on signs and on several parts."""
    sizes = [np.tanh(np.log((part**2).sum(0) + 1e-12)).mean() for part in (state.xi, state.eta, state.tau)]
    return np.array([
        *sizes, *np.tanh(np.log(state.prior[[0, 1, 3]]) / 2), np.tanh(np.log(state.mean**2 + 1e-12)).mean(),
        np.tanh(state.mean * state.xi.sum(0)).mean(), np.tanh(state.xi.sum()), np.tanh((state.eta * state.tau).sum()),
        np.tanh((state.eta * state.tau).sum(0) ** 2).mean(), np.tanh(state.tau).mean(), np.tanh(state.tau.min()),
        np.tanh(((state.xi - state.mean) ** 2).sum(0)).mean(),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "learn", "users", "items", "mean"),
    [
        (rescale_factors, NOTHING, 3, 2, 0.6),
        (rescale_factors, MEANS, 1, 2, 0.0),
        (rescale_factors, ALL, 3, 2, 0.0),
        (draw_prior, SCALES, 1, 2, 0.0),
        (draw_prior, SCALES, 3, 2, 0.6),
        (draw_prior, ALL, 1, 2, 0.0),
    ],
)
def test_a_stage_without_data_leaves_the_prior_unchanged(stage, learn, users, items, mean):
    rng = np.random.default_rng([users, items, sum(learn)])
    changes = []
    for replicate in range(REPLICATES):
        state = from_prior(rng, learn, mean, users, items)
        before = functions(state)
        for turn in range(TURNS):
            stage(Clock(3, replicate, turn), state)
        changes.append(functions(state) - before)
    table = np.array(changes)
    error = table.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
    z = np.divide(table.mean(axis=0), error, out=np.zeros(table.shape[1]), where=error > 1e-12)
    assert np.abs(z).max() < 4.2, z.round(1)


def test_moves_along_orbits_change_the_factors_and_no_preference():
    rng = np.random.default_rng(0)
    state = from_prior(rng, ALL, 0.0, 3, 5)

    def preferences():
        half = np.einsum("uk,ik,jk->uij", state.xi, state.eta, state.tau)
        return half - half.transpose(0, 2, 1)

    before, eta = preferences(), state.eta.copy()
    for turn in range(20):
        rescale_factors(Clock(1, 0, turn), state)
    np.testing.assert_allclose(preferences(), before, atol=1e-9)
    assert np.abs(state.eta - eta).max() > 0.1


def test_the_prior_of_the_bias_without_data_stays_what_it_is():
    rng = np.random.default_rng(0)
    meetings = np.array([-0.7, 0.2, 0.5])
    nothing = ByUser(np.zeros(2, np.int64), *(np.empty(0, np.int32) for _ in range(3)), np.empty(0, np.float32))
    changes = []
    for replicate in range(REPLICATES):
        scale, slope = abs(rng.normal()), rng.normal(0, 0.25)
        prior = np.array([1.0, 1.0, 1.0, 1.0, scale**-2, slope])
        eta = rng.normal(slope * meetings, scale, (1, 3)).T
        of_bias = {"meetings": meetings, "bias_centre": slope * meetings}
        one = np.empty((3, 0))
        state = ChainState(np.zeros(4, bool), prior, np.empty(0), one[:1], eta, one, **of_bias)

        def found(state=state):
            bias, (weight, slope) = state.eta[:, 0], state.prior[4:]
            own = bias - slope * meetings
            np.testing.assert_allclose(slope * meetings, state.bias_centre, atol=1e-12)
            products = weight * (own @ own) / 4, 9 * slope * (meetings @ bias), bias[0] * bias[1], bias[2]
            logarithms = np.log(weight) / 2, np.log(slope**2), np.log(own @ own), np.log((meetings @ bias) ** 2)
            return np.tanh(np.array([*products, *logarithms, 4 * slope, 4 * (meetings @ own)]))

        before = found()
        for turn in range(TURNS):
            draw_bias_prior(Clock(3, replicate, turn), state, nothing, np.empty(0))
        changes.append(found() - before)
    table = np.array(changes)
    z = table.mean(axis=0) / (table.std(axis=0, ddof=1) / np.sqrt(REPLICATES))
    assert np.abs(z).max() < 4.2, z.round(1)
