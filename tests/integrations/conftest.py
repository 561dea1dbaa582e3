"""One small split, a model whose taste runs in cycles, and the lists that sadrec itself gives."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec import SAD, Interactions

SETTINGS = {"factors": 6, "iterations": 8, "num_threads": 1}
N, CANDIDATES = 10, 20


class Lists:
    """A model for ``evaluate_top_n`` whose order is that of ``recommend`` of another."""

    def __init__(self, model, method, candidates=CANDIDATES, length=N):
        self.users, self.items = model.users, model.items
        self.lists = {
            user: model.recommend(user, N=length, method=method, candidates=candidates)[0] for user in model.users
        }

    def scores(self, users):
        scores = np.full((len(users), len(self.items)), -1000.0)
        column = {item: place for place, item in enumerate(self.items.tolist())}
        for row, user in enumerate(np.asarray(users).tolist()):
            for place, item in enumerate(self.lists[user].tolist()):
                scores[row, column[item]] = -place
        return scores


@pytest.fixture(scope="session")
def split():
    """Interactions of users of two groups, in a part to train on and one to test on, both of all users and items."""
    rng = np.random.default_rng(3)
    users, items = 50, 40
    chance = np.where((np.arange(users) % 2)[:, None] == (np.arange(items) % 2)[None, :], 0.5, 0.1)
    liked = csr_matrix((rng.random((users, items)) < chance).astype(np.float32))
    data = Interactions.from_csr(liked, [f"u{n:02}" for n in range(users)], [f"i{n:02}" for n in range(items)])
    train, test = data.split(test=0.25, seed=1)
    assert (np.diff(train.matrix.indptr) > 0).all() and (train.matrix.sum(axis=0) > 0).all()
    return train, test


@pytest.fixture(scope="session")
def cyclic(split):
    """A fitted model whose order by wins is not that by mean margin."""
    train, _ = split
    rng = np.random.default_rng(0)
    users, items = (len(train.users), 5), (len(train.items), 5)
    model = SAD.from_factors(
        rng.normal(size=users),
        rng.normal(size=items),
        rng.exponential(size=items),
        users=train.users,
        items=train.items,
        seen=train.matrix,
    )
    by_wins = (model.recommend(user, N=N, method="wins", candidates=CANDIDATES)[0] for user in model.users)
    assert any((model.recommend(u, N=N)[0] != w).any() for u, w in zip(model.users, by_wins, strict=True))
    return model


def rows(data):
    """Return the (user, item) of every interaction."""
    matrix = data.matrix.tocoo()
    return list(zip(data.users[matrix.row].tolist(), data.items[matrix.col].tolist(), strict=True))
