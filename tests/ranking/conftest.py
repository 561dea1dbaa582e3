"""Small random parameters, what they mean by brute force, and games whose answers are known."""

import numpy as np
import pytest
from hypothesis import strategies as st

from sadrec.ranking import Parameters
from sadrec.ranking.tournament import Tournament


@st.composite
def _parameters(draw, least_items=0):
    """Parameters of every kind: with and without T, zeros in T, bias; of whole numbers (hence ties) or not."""
    users, items = draw(st.integers(1, 4)), draw(st.integers(least_items, 9))
    factors = draw(st.integers(1, 5))
    rivals = draw(st.sampled_from(["none", "ones", "zeros", "free"]))
    whole, bias = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def numbers(*shape):
        return (rng.integers(-2, 3, shape) if whole else rng.standard_normal(shape)).astype(np.float32)

    tau = {
        "none": None,
        "ones": np.ones((items, factors), np.float32),
        "zeros": np.abs(numbers(items, factors)) * rng.integers(0, 2, (items, factors)).astype(np.float32),
        "free": np.abs(numbers(items, factors)),
    }[rivals]
    return Parameters(numbers(users, factors), numbers(items, factors), tau, numbers(items) if bias else None)


@st.composite
def _games(draw, least_items=0):
    """Tournaments, half of them of whole numbers with ties, the others without."""
    size = draw(st.integers(least_items, 8))
    whole = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    upper = np.triu(rng.integers(-2, 3, (size, size)).astype(float) if whole else rng.standard_normal((size, size)), 1)
    return Tournament(np.arange(100, 100 + size), upper - upper.T)


@pytest.fixture(scope="session")
def parameters():
    """A strategy for parameters, possibly without items."""
    return _parameters()


@pytest.fixture(scope="session")
def some_parameters():
    """A strategy for parameters with two items or more."""
    return _parameters(least_items=2)


@pytest.fixture(scope="session")
def games():
    """A strategy for tournaments, possibly without items."""
    return _games()


@pytest.fixture(scope="session")
def brute_force():
    """A function that computes all margins of a user from the definition, in double precision."""

    def margins(parameters, user):
        xi = parameters.user_factors[user] if np.ndim(user) == 0 else user
        m, k = parameters.item_factors.shape
        x = np.zeros((m, m))
        for i in range(m):
            for j in range(m):
                for h in range(k):
                    tau_i, tau_j = (
                        (1.0, 1.0)
                        if parameters.rival_factors is None
                        else (float(parameters.rival_factors[i, h]), float(parameters.rival_factors[j, h]))
                    )
                    eta_i, eta_j = float(parameters.item_factors[i, h]), float(parameters.item_factors[j, h])
                    x[i, j] += float(xi[h]) * (eta_i * tau_j - eta_j * tau_i)
                if parameters.item_bias is not None:
                    x[i, j] += float(parameters.item_bias[i]) - float(parameters.item_bias[j])
        return x

    return margins


@pytest.fixture(scope="session")
def rock_paper_scissors():
    """Rock beats scissors by 2, scissors paper by 3, paper rock by 1; all of them beat air by 1. One user."""
    eta = np.array([[2, 0, 0, 1], [0, 0, 1, 1], [0, 3, 0, 1], [0, 0, 0, 0]], np.float32)
    tau = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 1]], np.float32)
    return Parameters(np.ones((1, 4), np.float32), eta, tau)


ROCK, PAPER, SCISSORS, AIR = range(4)
