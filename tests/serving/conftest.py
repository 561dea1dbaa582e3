"""A small service: simulated people, titles and a log."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from sadrec import SAD
from sadrec.data import simulate


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with all the files that a service takes."""
    folder = tmp_path_factory.mktemp("served")
    people = simulate("sim2", n=40, m=30, k=3, seed=1)
    comparisons, _ = people.comparisons.split(test=0.1, seed=0)
    SAD(factors=3, iterations=15).fit(comparisons, show_progress=False).save(folder / "model.sad")
    SAD(factors=3, iterations=2).fit(comparisons, show_progress=False).save(folder / "other.sad")
    rng = np.random.default_rng(0)
    liked = (rng.random((50, 30)) < 0.2).astype(np.float32)
    SAD(factors=4, iterations=3).fit(liked, show_progress=False).save(folder / "clicks.sad")
    titles = [f"Dish {number}" for number in range(30)]
    pl.DataFrame({"item": np.arange(30), "title": titles}).write_csv(folder / "items.csv")
    comparisons.to_frame().write_csv(folder / "comparisons.csv")
    return folder


@pytest.fixture(scope="session")
def settings(folder):
    """A function that makes settings with paths into the folder."""
    from sadrec.serving import ServeSettings

    def make(model="model.sad", **options):
        files = ("items", "posterior")
        paths = {name: str(folder / value) for name, value in options.items() if name in files}
        return ServeSettings(str(folder / model), **{**options, **paths})

    return make


@pytest.fixture(scope="session")
def started(settings):
    """A function that starts a service in this process; it returns a client and the model that is served."""
    from fastapi.testclient import TestClient

    from sadrec.serving import create_app
    from sadrec.serving.reload import load_warm

    def start(model="model.sad", **options):
        chosen = settings(model, **options)
        served = load_warm(chosen)
        service = create_app(chosen, served)
        client = TestClient(service)
        return SimpleNamespace(client=client, model=SAD.load(chosen.model), served=served, service=service)

    return start


@pytest.fixture(scope="session")
def running(started, folder):
    """A service with everything but keys."""
    return started(items="items.csv", log=str(folder / "answers.jsonl"))


@pytest.fixture(scope="session")
def clicks(started):
    """A service of a model of interactions, without anything else."""
    return started("clicks.sad")
