"""A fit on several workers that are all in this process: what it keeps to resume from is what a cluster keeps."""

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from campaigns._subjects import clicks
from sadrec._core.files import fingerprint
from sadrec.cluster import Ray, shared
from sadrec.cluster.actors import Actor
from sadrec.cluster.scheduler import Workers
from sadrec.data import ParquetFiles
from sadrec.training.loop import run
from sadrec.training.settings import Settings

SETTINGS = Settings(
    factors=3,
    iterations=4,
    learning_rate=0.1,
    regularization=0.01,
    rival_regularization=0.002,
    blocks=3,
    seed=3,
    schedule="linear",
    init_scale=0.1,
    learn_rivals=True,
    bias=True,
    negative_candidates=2,
    order_share=0.0,
    adaptive=False,
    user_balance=0.0,
    negatives=1,
    length=0.0,
    solver="sgd",
    loss="pairwise",
)


class WorkersHere(Workers):
    """Workers in this process, which do at once what they are called for."""

    def __init__(self, count: int, threads: int = 1, seconds: float = 0.0, *, at_least: int = 1) -> None:
        self.workers, self.count = [Actor(number, count, threads) for number in range(count)], count

    def call(self, worker: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Have a worker do something, and return its answer."""
        return self.workers[worker].call(method, *arguments)

    def get(self, answers: list[Any]) -> list[Any]:
        """Return the answers."""
        return answers

    def end(self) -> None:
        """There is nothing to end."""


def fit(folder: Path, after_epoch: Any = lambda epoch, figures: False) -> str:
    """Train to the end with checkpoints, or on from one, and return a digest of what was learnt."""
    entries, history = clicks().matrix.tocoo(), list[Any]()
    with tempfile.TemporaryDirectory() as place, mock.patch.object(shared, "Actors", WorkersHere):
        columns = {"user": entries.row, "item": entries.col, "rating": entries.data}
        pl.DataFrame(columns).write_parquet(Path(place) / "clicks.parquet")
        data = shared.SharedData(Ray(workers=2), ParquetFiles([place]), None, ends_cluster=False)
        checkpoints = data.checkpoints(folder, {"settings": SETTINGS.as_dict()}, 0.0)
        step = data.step(SETTINGS, folder, lambda learnt: learnt)
        run(step, after_epoch=after_epoch, checkpoints=checkpoints, show_progress=False, history=history)
        learnt = step.learnt(finished=True)
        return fingerprint(learnt.user_factors.whole(), learnt.item_rows, learnt.item_bias, history)
