"""The sampler against the joint distribution of parameters and data (Geweke 2004), in independent replicates.

Parameters drawn from the prior are an exact draw from the posterior of the data they produce. If sweeps leave the
posterior unchanged, parameters and data after some sweeps have the joint distribution they had before, so over many
replicates the averages of any function of both agree. Any error in a conditional shows as a difference.
"""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import norm

from sadrec.posterior.sampling import Chain
from sadrec.posterior.triples import as_triples
from sadrec.training.engine import Pairs

USERS, ITEMS, FACTORS, REPLICATES, SWEEPS = 2, 4, 2, 1500, 10
CASES = {
    "default": {},
    "centred": {"user_mean": 0.8, "user_scale": 0.7, "item_scale": 1.3, "rival_scale": 0.6},
    "paper": {"rival_mean": 0.0},
    "bpr": {"rival_scale": 0.0},
    "learnt scales": {"user_scale": "learn", "item_scale": "learn", "rival_scale": "learn"},
    "all learnt": {"user_scale": "learn", "item_scale": "learn", "rival_scale": "learn", "user_mean": "learn"},
    "bias": {"bias": True},
    "bias, bpr": {"bias": True, "rival_scale": 0.0},
}
CASES["bias, all learnt"] = {**CASES["all learnt"], "bias": True}


def pairs():
    """All pairs of items but one for each user, one of them three times, every other one a fraction of a comparison."""
    one, other = (side[:-1] for side in np.triu_indices(ITEMS, 1))
    user = np.repeat(np.arange(USERS), len(one))
    one, other = np.tile(one, USERS), np.tile(other, USERS)
    weight = np.ones(len(user))
    weight[1], weight[::2] = 3.0, 0.2
    return user, one, other, weight


MEETINGS = as_triples(Pairs(*pairs()), USERS, ITEMS).meetings


def draw_prior(chosen, rng):
    def scale(value):
        return abs(rng.normal()) if value == "learn" else value

    scales = [scale(value) for value in (chosen.user_scale, chosen.item_scale, chosen.rival_scale)]
    mean = rng.normal(size=FACTORS) if chosen.user_mean == "learn" else np.full(FACTORS, chosen.user_mean)
    xi = rng.normal(mean, scales[0], (USERS, FACTORS))
    eta = rng.normal(0.0, scales[1], (ITEMS, FACTORS))
    middle = chosen.rival_mean
    tau = np.full((ITEMS, FACTORS), float(middle))
    if scales[2]:
        u = 1 - rng.random((ITEMS, FACTORS))
        tau = np.maximum(middle - scales[2] * ndtri_exp(log_ndtr(middle / scales[2]) + np.log(u)), 0.0)
    of_bias = {}
    if chosen.bias:
        slope, scale = rng.normal(0, 0.25), abs(rng.normal())
        centre = slope * MEETINGS
        of_bias = {"bias_centre": centre, "prior": np.append(chosen.prior()[:4], (scale**-2, slope))}
        eta = np.column_stack((eta, rng.normal(centre, scale)))
    return scales, mean, xi, eta, tau, of_bias


def preference(xi, eta, tau, user, one, other):
    bias = eta[:, FACTORS:].sum(axis=1)
    eta = eta[:, :FACTORS]
    return ((eta[one] * tau[other] - eta[other] * tau[one]) * xi[user]).sum(1) + bias[one] - bias[other]


def functions(xi, eta, tau, scales, mean, user, winner, loser):
    """Bounded functions of everything, so that averages settle whatever the tails."""
    x = np.tanh(preference(xi, eta, tau, user, winner, loser) / 2)
    eta = eta[:, :FACTORS]
    log_scales = np.log(np.maximum(scales, 1e-9))
    return np.array([
        x.mean(), (x**2).mean(), x[0] * x[1], np.tanh(xi).mean(), np.tanh(xi**2).mean(), np.tanh(eta**2).mean(),
        np.tanh(eta[0] * eta[1]).mean(), np.tanh(xi[0] * xi[1]).mean(), np.tanh(tau).mean(), np.tanh(tau**2 / 4).mean(),
        np.tanh(eta**2 * tau**2).mean(), np.tanh(eta.sum(0) ** 2).mean(), np.tanh(tau.min()), *np.tanh(log_scales),
        np.tanh(mean**2).mean(), np.tanh(mean[0] * xi[0, 0]),
        *(np.tanh(np.log((part**2).sum(0) + 1e-9)).mean() for part in (np.atleast_2d(mean), xi, eta, tau)),
    ])  # fmt: skip


def functions_of_bias(state):
    """The same of the bias, with its prior."""
    bias, (weight, slope), own = state.eta[:, FACTORS], state.prior[4:], state.eta[:, FACTORS] - state.bias_centre
    return np.array([
        np.tanh(np.log(weight) / 2), np.tanh(4 * slope), np.tanh((4 * slope) ** 2), np.tanh(bias**2).mean(),
        np.tanh(bias[0] * bias[1]), np.tanh(bias.sum() ** 2), np.tanh(np.log((own**2).sum() + 1e-9)),
        np.tanh(weight * (own**2).sum() / 4), np.tanh(slope * (MEETINGS @ bias) * 20), np.tanh((MEETINGS @ own) * 4),
        np.tanh(np.log(((MEETINGS @ bias)) ** 2 + 1e-9)), np.tanh(bias[0] * state.eta[0, 0] * state.xi[:, 0].mean()),
    ])  # fmt: skip


def differences(chosen):
    """Return, for each function, the mean change over the sweeps in units of its standard error."""
    user, one, other, weight = pairs()
    rng = np.random.default_rng(1)
    changes = []
    for replicate in range(REPLICATES):
        scales, mean, xi, eta, tau, of_bias = draw_prior(chosen, rng)
        x = preference(xi, eta, tau, user, one, other)
        # A weight of 3 is three comparisons, here with the same outcome only if all three say so: observe each.
        copies = np.where(weight == 3, 3, 1)
        at = np.repeat(np.arange(len(user)), copies)
        part = np.where(weight < 1, weight, 1.0)[at]
        won = rng.random(len(at)) < norm.cdf(np.sqrt(part) * x[at])
        winner, loser = np.where(won, one[at], other[at]), np.where(won, other[at], one[at])
        triples = as_triples(Pairs(user[at], winner, loser, part), USERS, ITEMS)
        chain = Chain(triples, chosen, replicate)
        for name, values in of_bias.items():
            getattr(chain.state, name)[:] = values
        chain.state.xi[:], chain.state.eta[:], chain.state.tau[:], chain.state.mean[:] = xi, eta, tau, mean
        for place, scale, learnt in zip((0, 1, 3), scales, chain.state.learn, strict=False):
            if learnt:
                chain.state.prior[place] = scale**-2.0
        state = chain.state

        def measured(triple=(user[at], winner, loser), chain=chain, state=state):
            values = functions(state.xi, state.eta, state.tau, chain.scales[:3], state.mean, *triple)
            return np.concatenate((values, functions_of_bias(state) if chosen.bias else np.empty(0)))

        before = measured()
        chain.advance(SWEEPS)
        changes.append(measured() - before)
    table = np.array(changes)
    assert np.isfinite(table).all()
    error = table.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
    return np.divide(table.mean(axis=0), error, out=np.zeros(table.shape[1]), where=error > 1e-12)


@pytest.mark.parametrize("case", CASES)
def test_sweeps_leave_the_joint_distribution_unchanged(case, settings):
    z = differences(settings(**CASES[case]))
    assert np.abs(z).max() < 4.2, z.round(1)
