"""A fit on several workers that are all in this process: what it keeps to resume from is what a cluster keeps."""

from pathlib import Path
from typing import Any

from campaigns._subjects import clicks
from sadrec._files import fingerprint
from sadrec.cluster.actors import OnNode
from sadrec.cluster.run import DataHere, Run
from sadrec.training.dataset import TrainingData, training_data
from sadrec.training.engine import Course
from sadrec.training.factors import Factors, initial_factors
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


class _Places:
    workers, threads, spare_seconds, collect = 2, 1, 0.0, True


class _Workers:
    """Workers that do at once what they are told."""

    def __init__(self, made: list[OnNode]) -> None:
        self._made, self.count = made, len(made)
        self.places = [("here", 0)] * self.count

    def call(self, worker: int, method: str, *arguments: Any, returns: int = 1) -> Any:
        """Have a worker do something, and return what it says."""
        return getattr(self._made[worker], method)(*arguments)

    def get(self, answers: list[Any]) -> list[Any]:
        """Return what was said."""
        return answers

    def end(self) -> None:
        """There is nothing to end."""


class _Source(DataHere):
    """Data and parameters of this process, without Ray."""

    def __init__(self, data: TrainingData, factors: Factors) -> None:
        self._settings, self._factors, self._shape = SETTINGS, factors, data.shape
        self._positives, self._sources = data.positives(SETTINGS), data.pair_sources(SETTINGS)
        self._drawn, self._pairs = self._positives is not None, 0

    def start(self, count: int, seconds: float, at_least: int) -> Any:
        """Make workers."""
        given = self._shape, SETTINGS, self._positives, self._sources, 1
        return _Workers([OnNode(number, count, *given) for number in range(count)])


def fit(folder: Path, after_epoch: Any = lambda epoch, figures: False) -> str:
    """Train to the end with checkpoints, or on from one, and return a digest of what was learnt."""
    data = training_data(clicks())
    history: list[Any] = []
    factors = initial_factors(*data.shape, SETTINGS.factors, 0.1, True, True, SETTINGS.seed)
    course = Course({"settings": SETTINGS.as_dict()}, folder, 0.0, after_epoch, False, "training", history)
    Run(_Places(), _Source(data, factors), SETTINGS, course).to_the_end()
    return fingerprint(factors.users, factors.items, factors.bias, history)
