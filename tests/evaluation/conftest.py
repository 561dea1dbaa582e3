"""Small models whose every number can be computed by hand, and small data."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.data import Ids, Interactions
from sadrec.ranking import Parameters, sigmoid
from sadrec.ranking.belief import Point


class FactorModel:
    """Random factors behind the verbs of the protocol; ids are those of the data."""

    def __init__(self, data, factors=3, seed=0, rivals=True, bias=True, scale=1.0):
        rng = np.random.default_rng(seed)
        users, items = data.matrix.shape
        self.users, self.items = data.users, data.items
        parameters = Parameters(
            rng.normal(0, scale, (users, factors)).astype(np.float32),
            rng.normal(0, 1, (items, factors)).astype(np.float32),
            rng.exponential(1, (items, factors)).astype(np.float32) if rivals else None,
            rng.normal(0, 1, items).astype(np.float32) if bias else None,
        )
        self.state = SimpleNamespace(belief=Point(parameters))

    def tensor(self, row):
        p = self.state.belief.parameters
        eta = p.item_factors.astype(float)
        tau = np.ones_like(eta) if p.rival_factors is None else p.rival_factors.astype(float)
        x = (eta * p.user_factors[row]) @ tau.T
        x = x - x.T
        return x if p.item_bias is None else x + p.item_bias[:, None] - p.item_bias[None, :]

    def margins(self, user, items, rivals):
        row = Ids(self.users).positions(user)
        of = Ids(self.items).positions
        return self.tensor(row)[np.ix_(of(items), of(rivals))]

    def scores(self, users):
        return np.stack([self.tensor(row).mean(axis=1) for row in Ids(self.users).positions(users)])

    def probability(self, user, item, rival):
        row = Ids(self.users).positions(user)
        item, rival = np.broadcast_arrays(np.asarray(item), np.asarray(rival))
        of = Ids(self.items).positions
        x = self.tensor(row)[of(item.ravel()), of(rival.ravel())]
        return sigmoid(x).reshape(item.shape)


class Scores:
    """A scores-only model."""

    def __init__(self, data, table):
        self.users, self.items = data.users, data.items
        self.table = np.asarray(table)
        self._rows = Ids(data.users)

    def scores(self, users):
        return self.table[self._rows.positions(users)]


class Margins:
    """A margins-only model around another."""

    def __init__(self, model):
        self.users, self.items = model.users, model.items
        self.margins = model.margins


@pytest.fixture
def factor_model():
    return FactorModel


@pytest.fixture
def scores_model():
    return Scores


@pytest.fixture
def margins_model():
    return Margins


@pytest.fixture
def make_ratings():
    """Random ratings 0..5 with string item ids and unsorted integer user ids; zeros are stored ratings."""

    def make(users=25, items=60, share=0.25, seed=0, ratings=True, popular=False):
        rng = np.random.default_rng(seed)
        chance = np.linspace(2 * share, 0, items) if popular else share
        mask = rng.random((users, items)) < chance
        mask[:, 0] |= ~mask.any(axis=1)
        rows, columns = np.nonzero(mask)
        values = rng.integers(0, 6, len(rows)) if ratings else np.ones(len(rows))
        matrix = csr_matrix((values.astype(np.float32), (rows, columns)), shape=mask.shape)
        ids = [f"item {i:03d}" for i in range(items)]
        return Interactions.from_csr(matrix, users=rng.permutation(1000)[:users], items=ids)

    return make
