"""Tiny data whose answer is known, and the environments of the baselines."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sadrec.data import Interactions
from studies.baselines import RegistryUnreachableError, install


class TwoGroups:
    """Two groups of users, each of which touches most items of its own group and none of the other's.

    What is left out of somebody's group is what they would like next.
    """

    users, items = 24, 16

    def __init__(self):
        rng = np.random.default_rng(4)
        self.own = (np.arange(2 * self.users) % 2)[:, None] == (np.arange(2 * self.items) % 2)[None, :]
        self.touched = self.own & (rng.random(self.own.shape) < 0.75)
        people = np.arange(2 * self.users)
        self.touched[people, people % (2 * self.items)] = False  # nobody has the whole group
        self.data = Interactions.from_csr(csr_matrix(self.touched.astype(np.float32)))

    def right(self, model):
        """Share of the pairs (left-out item of the own group, item of the other) that the model orders rightly."""
        scores = model.scores(self.data.users)
        wins = []
        for row, own, touched in zip(scores, self.own, self.touched, strict=True):
            wins.append((row[own & ~touched][:, None] > row[~own][None, :]).mean())
        return np.array(wins).mean()


def pytest_collection_modifyitems(items):
    """Mark the tests that need a real environment: they run with ``make test-baselines``."""
    for item in items:
        if {"light", "heavy", "hybrid"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.baselines)


@pytest.fixture(scope="session")
def two_groups():
    return TwoGroups()


def _installed(name):
    try:
        return install(name)
    except RegistryUnreachableError as error:
        pytest.skip(f"needs the package registry to install {name}: {str(error).splitlines()[-1]}")


@pytest.fixture(scope="session")
def light():
    """The environment of SVD, MF, PMF and implicit's models, built once and kept in the cache folder."""
    return _installed("light")


@pytest.fixture(scope="session")
def heavy():
    """The environments of FM, NCF and the VAE."""
    return {name: _installed(name) for name in ("rankfm", "recommenders")}


@pytest.fixture(scope="session")
def hybrid():
    """The environment of LightFM."""
    return _installed("lightfm")
