"""Every conditional of the sampler against brute force, on models small enough for it."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

from sadrec.posterior.chain import ChainState, Clock
from sadrec.posterior.items import draw_items, draw_orthant, item_conditional
from sadrec.posterior.sampling import Chain
from sadrec.posterior.triples import as_triples
from sadrec.posterior.users import draw_users, log_scale_step
from sadrec.training.engine import Pairs


def small(users=2, items=4, factors=2, rows=40, seed=0, bias=False):
    rng = np.random.default_rng(seed)
    winner = rng.integers(items, size=rows)
    loser = (winner + rng.integers(1, items, size=rows)) % items
    weight = rng.choice([0.25, 1.0, 2.0, 1.5], size=rows)
    triples = as_triples(Pairs(rng.integers(users, size=rows), winner, loser, weight), users, items)
    xi, eta = rng.normal(size=(users, factors)), rng.normal(size=(items, factors))
    tau = np.abs(rng.normal(1, 1, (items, factors)))
    if bias:
        eta = np.column_stack((eta, rng.normal(size=items)))
    of_bias = {"meetings": triples.meetings, "bias_centre": np.linspace(-1, 1, items)}
    return triples, ChainState(np.zeros(4, bool), np.ones(6), np.zeros(factors), xi, eta, tau, **of_bias)


def extended(state):
    """A bias is a factor whose xi and tau are 1."""
    ones = state.eta.shape[1] - state.tau.shape[1]
    xi, tau = (np.column_stack((side, *[np.ones(len(side))] * ones)) for side in (state.xi, state.tau))
    return xi, state.eta, tau


def preferences(state, triples):
    i, j = triples.by_user.winner, triples.by_user.loser
    xi, eta, tau = extended(state)
    return triples.by_user.root * ((eta[i] * tau[j] - eta[j] * tau[i]) * xi[triples.by_user.user]).sum(1)


@pytest.mark.parametrize("bias", [False, True])
def test_a_users_vector_has_the_moments_of_its_probit_posterior(bias):
    # Items stay fixed: the stage of the users alone is then a sampler of a probit regression, checked on a grid.
    triples, state = small(users=1, rows=14, seed=3, bias=bias)
    state.prior[0], state.mean[:] = 1 / 0.81, 0.4
    residual, draws = np.zeros(len(triples)), []
    for sweep in range(30_000):
        draw_users(0, 1, Clock(1, 0, sweep), state, triples.by_user, residual)
        draws.append(state.xi[0].copy())
    result = np.array(draws[100:])
    axis = np.linspace(-4, 4.5, 300)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    i, j = triples.by_user.winner, triples.by_user.loser
    _, eta, tau = extended(state)
    features = triples.by_user.root[:, None] * (eta[i] * tau[j] - eta[j] * tau[i])
    given = features[:, 2:].sum(axis=1)
    log_p = log_ndtr(grid @ features[:, :2].T + given).sum(1) + stats.norm(0.4, 0.9).logpdf(grid).sum(1)
    weight = np.exp(log_p - log_p.max())
    weight /= weight.sum()
    mean = weight @ grid
    covariance = (grid - mean).T @ ((grid - mean) * weight[:, None])
    np.testing.assert_allclose(result.mean(0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(result.T), covariance, atol=0.03)


@pytest.mark.parametrize("bias", [False, True])
def test_latent_margins_are_positive_and_the_residual_is_margin_minus_preference(bias):
    triples, state = small(bias=bias)
    residual = np.zeros(len(triples))
    draw_users(0, 2, Clock(1, 0, 1), state, triples.by_user, residual)
    assert (residual + preferences(state, triples) > 0).all()
    before = residual + preferences(state, triples)
    draw_items(Clock(1, 0, 1), state, triples.by_item, residual)
    after = residual + preferences(state, triples)
    # Items multiply margins by positive factors of their own, and change nothing else about them.
    ratio = after / before
    i, j = triples.by_user.winner, triples.by_user.loser
    for first in range(4):
        for second in range(4):
            same = ((i == first) & (j == second)) | ((i == second) & (j == first))
            assert np.ptp(ratio[same]) < 1e-6 if same.any() else True


@pytest.mark.parametrize("bias", [False, True])
def test_an_items_precision_and_linear_term_are_those_of_the_regression_on_both_its_vectors(bias):
    triples, state = small(bias=bias)
    size, own = 4 + bias, 2 + bias
    residual = np.random.default_rng(1).normal(size=len(triples))
    i, j, u = triples.by_user.winner, triples.by_user.loser, triples.by_user.user
    for item in range(4):
        precision, linear = np.empty((size, size)), np.empty(size)
        item_conditional(item, size, state, triples.by_item, residual, precision, linear)
        design = np.zeros((len(triples), size))
        for row in np.flatnonzero((i == item) | (j == item)):
            for place in range(size):
                # x is linear in the item's vectors: a difference quotient is exact.
                x = []
                for step in (0.0, 1.0):
                    xi, eta, tau = (side.copy() for side in extended(state))
                    (eta if place < own else tau)[item, place if place < own else place - own] += step
                    x.append(((eta[i[row]] * tau[j[row]] - eta[j[row]] * tau[i[row]]) * xi[u[row]]).sum())
                design[row, place] = triples.by_user.root[row] * (x[1] - x[0])
        theta = np.concatenate((state.eta[item], state.tau[item]))
        target = residual + design @ theta
        np.testing.assert_allclose(np.tril(precision), np.tril(design.T @ design), atol=1e-9)
        np.testing.assert_allclose(linear, design.T @ target, atol=1e-9)


@pytest.mark.parametrize("mean", [(0.3, -0.4), (-1.5, 0.2), (4.0, 5.0)])
def test_tau_has_the_moments_of_the_normal_cut_to_the_orthant(mean):
    precision = np.array([[2.0, -0.9], [-0.9, 1.2]])
    factor = np.linalg.cholesky(precision)
    current, draws = np.ones(2), []
    for turn in range(40_000):
        draw_orthant(turn, np.uint64(5), np.uint64(6), factor, factor.T @ np.array(mean), current)
        draws.append(current.copy())
    result = np.array(draws)
    assert (result >= 0).all()
    rng = np.random.default_rng(0)
    wanted = rng.multivariate_normal(mean, np.linalg.inv(precision), 3_000_000)
    wanted = wanted[(wanted >= 0).all(1)]
    np.testing.assert_allclose(result.mean(0), wanted.mean(0), atol=0.025)
    np.testing.assert_allclose(np.cov(result.T), np.cov(wanted.T), atol=0.04)


@pytest.mark.parametrize(("count", "quadratic", "linear"), [(2.0, 1.5, 0.0), (30.0, 40.0, 6.0), (5.0, 2.0, -3.0)])
def test_the_scale_step_keeps_its_density(count, quadratic, linear):
    rng = np.random.default_rng(0)
    g, draws = 1.0, []
    for _ in range(60_000):
        # From the point g of the line, quadratic and linear term are those of the multiples of that point.
        g *= log_scale_step(count, quadratic * g * g, linear * g, rng.normal(), rng.random())
        draws.append(g)
    axis = np.linspace(1e-4, 12, 200_000)
    log_p = (count - 1) * np.log(axis) - quadratic * axis**2 / 2 + linear * axis
    weight = np.exp(log_p - log_p.max())
    mean = (weight * axis).sum() / weight.sum()
    deviation = np.sqrt((weight * (axis - mean) ** 2).sum() / weight.sum())
    assert np.mean(draws) == pytest.approx(mean, abs=0.05 * deviation)
    assert np.std(draws) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rival_mean": 0.0},
        {"rival_scale": 0.0},
        {"user_mean": 1.0, "user_scale": "learn"},
        {"user_mean": "learn"},
        {"bias": True},
    ],
)
def test_all_stages_together_have_the_moments_of_the_posterior(changes, settings):
    # One user, three items: importance sampling from the prior is the brute force.
    chosen = settings(**changes)
    user, winner, loser = np.zeros(9, int), np.array([0, 0, 0, 0, 1, 1, 2, 2, 2]), np.array([1, 1, 1, 2, 2, 2, 1, 0, 0])
    triples = as_triples(Pairs(user, winner, loser), 1, 3)
    rng = np.random.default_rng(2)
    count = 400_000
    scale = np.abs(rng.normal(size=(count, 1))) if chosen.user_scale == "learn" else 1.0
    mean = rng.normal(size=(count, 2)) if chosen.user_mean == "learn" else chosen.user_mean
    xi, eta = mean + scale * rng.normal(size=(count, 2)), rng.normal(size=(count, 3, 2))
    if chosen.rival_scale == 0:
        tau = np.ones((count, 3, 2))
    else:
        low = stats.norm.cdf(0, chosen.rival_mean)
        tau = stats.norm.ppf(low + (1 - low) * rng.random((count, 3, 2)), chosen.rival_mean)

    if chosen.bias:  # all items met all others: the slope of its mean does nothing
        bias = np.abs(rng.normal(size=(count, 1, 1))) * rng.normal(size=(count, 3, 1))
        eta = np.concatenate((eta, bias), axis=2)

    def x(xi, eta, tau, i, j):
        bias, eta = eta[:, :, 2:].sum(axis=2), eta[:, :, :2]
        own = ((eta[:, i] * tau[:, j] - eta[:, j] * tau[:, i]) * xi[:, None]).sum(-1)
        return own + bias[:, i] - bias[:, j]

    weight = np.exp(log_ndtr(x(xi, eta, tau, winner, loser)).sum(1))
    pairs = np.array([0, 1, 2]), np.array([1, 2, 0])
    values = np.tanh(x(xi, eta, tau, *pairs))
    wanted = weight @ np.column_stack((values, values**2)) / weight.sum()
    chain = Chain(triples, chosen, 0)
    draws = []
    for _ in range(20_000):
        chain.advance(1)
        state = chain.state
        draws.append(np.tanh(x(state.xi, state.eta[None], state.tau[None], *pairs))[0])
    result = np.array(draws[200:])
    np.testing.assert_allclose(np.concatenate((result.mean(0), (result**2).mean(0))), wanted, atol=0.025)


def test_items_that_meet_the_same_items_again_meet_no_more():
    winner, loser = np.array([0, 0, 1, 2, 0]), np.array([1, 1, 0, 0, 3])
    triples = as_triples(Pairs(np.zeros(5, int), winner, loser), 1, 5)
    wanted = np.log1p([3, 1, 1, 1, 1])  # the last met nobody, and counts as those who met least
    np.testing.assert_allclose(triples.meetings, wanted - wanted[:4].mean())
