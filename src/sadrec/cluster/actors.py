"""Workers as actors of Ray: each in a process of its own, on whatever node has room for it."""

import importlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from operator import attrgetter
from typing import Any, TypeVar

from sadrec.cluster.scheduler import Workers
from sadrec.cluster.shuffle import Shuffle
from sadrec.cluster.worker import Worker
from sadrec.training.engine import Pairs, Settings

logger = logging.getLogger("sadrec")

T = TypeVar("T")

MOST_LOSSES = 5  # of workers, before an answer or an epoch
FIRST_SECONDS = 120.0  # in which all workers must find a place at first
_AGAIN = 2.0  # seconds to wait for a place for one worker less
_LOOK = 2.0  # seconds after which to see whether workers that start still have their places


class Lost(Exception):
    """A worker, a node or its data is lost; the request itself is valid."""


def repeated(attempt: Callable[[], T], after_loss: Callable[[], object], where: Callable[[], str]) -> T:
    """Return what ``attempt`` returns; after a loss call it again, unless there were many losses."""
    for losses in range(1, MOST_LOSSES + 2):
        try:
            return attempt()
        except Lost as loss:
            after_loss()
            if losses > MOST_LOSSES:
                raise RuntimeError(
                    f"{losses} attempts {where()} lost a worker ({loss}): see the logs of Ray for what ended them"
                ) from loss
            logger.warning("%s, %s; trying again", loss, where())
    raise AssertionError("an attempt ends with an answer or an error")


def ray() -> Any:
    """Import Ray; where it is missing, raise an error that says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # what is lost is said once, in our words
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("a cluster needs Ray: pip install 'sadrec[ray]'") from error


class Actor:
    """A worker as Ray runs it: its data and, during a fit, its trainer.

    Arrays from Ray's store cannot be written to, and are shared by the actors of a node.
    """

    def __init__(self, number: int, workers: int, threads: int) -> None:
        self.data, self._threads = Shuffle(number, workers), threads
        self.training: Worker

    def begin(self, settings: Settings, longest: int, scale: float, comparisons: Pairs | None) -> None:
        """Prepare a fit: see :class:`~sadrec.cluster.worker.Worker`."""
        self.training = Worker(self.data, settings, longest, scale, comparisons, self._threads)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method: ``data.read``, ``training.train``, ..."""
        return attrgetter(name)(self)(*arguments)

    def call_for_parts(self, name: str, *arguments: Any) -> Any:
        """Call a method that returns a tuple, of which Ray makes an object for each part; return one part alone."""
        answer = self.call(name, *arguments)
        return answer if len(answer) > 1 else answer[0]


class Actors(Workers):
    """Workers, each an actor of Ray."""

    def __init__(self, count: int, threads: int, seconds: float, *, at_least: int) -> None:
        """Start ``count`` workers, or fewer if the cluster lacks room after some seconds; raise below ``at_least``."""
        self._actors: list[Any] = []
        self._group: Any = None
        self.count = count
        try:
            self._reserve(threads, seconds, at_least)
            self._start(threads)
        except BaseException:
            self.end()
            raise

    def _reserve(self, threads: int, seconds: float, at_least: int) -> None:
        """Reserve CPUs, on different nodes if possible."""
        groups = importlib.import_module("ray.util.placement_group")
        for count in range(self.count, 0, -1):
            self._group = groups.placement_group([{"CPU": threads}] * count, strategy="SPREAD")
            if self._group.wait(seconds if count == self.count else _AGAIN):
                self.count = count
                return
            groups.remove_placement_group(self._group)
            self._group = None
            if count == at_least:
                break
        free = ray().available_resources().get("CPU", 0)
        raise ValueError(
            f"the cluster has no room for {at_least} workers with threads={threads} each, after {seconds:g} s: {free:g}"
            " CPUs are free; lower workers or threads, or add nodes"
        )

    def _start(self, threads: int) -> None:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        remote = ray().remote(Actor)
        for number in range(self.count):
            place = strategies.PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=number)
            options = {"num_cpus": threads, "max_restarts": 0, "scheduling_strategy": place}
            self._actors.append(remote.options(**options).remote(number, self.count, threads))
        answers = [actor.__ray_ready__.remote() for actor in self._actors]
        while len(ray().wait(answers, num_returns=len(answers), timeout=_LOOK)[0]) < len(answers):
            self._check_places()
        self.get(answers)

    def _check_places(self) -> None:
        """Raise Lost if a node on which a worker should start is gone: Ray would wait for it without end."""
        state = importlib.import_module("ray.util").placement_group_table(self._group)["state"]
        if state != "CREATED":
            raise Lost(f"a node was lost while workers started ({state.lower()} places)")

    def call(self, worker: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        """Call a worker's method after its earlier calls, without waiting; return references."""
        actor = self._actors[worker]
        if returns is None:
            return actor.call.remote(method, *arguments)
        parts = actor.call_for_parts.options(num_returns=returns).remote(method, *arguments)
        return parts if returns > 1 else [parts]

    def get(self, references: list[Any]) -> list[Any]:
        """Wait for answers and return them; raise Lost where a worker, a node or an object is gone."""
        try:
            return list(ray().get(references))
        except ray().exceptions.RayError as error:
            raise cause_of(error) from error

    def end(self) -> None:
        """End all workers; after this process has left the cluster they have ended already."""
        actors, group = self._actors, self._group
        self._actors, self._group = [], None
        if not ray().is_initialized():  # asked then, Ray would start a cluster
            return
        for actor in actors:
            with suppress(Exception):
                ray().kill(actor)
        if group is not None:
            with suppress(Exception):
                importlib.import_module("ray.util.placement_group").remove_placement_group(group)


def cause_of(error: BaseException) -> BaseException:
    """Return what a worker raised; Lost if a worker, a node or an object is gone."""
    errors = ray().exceptions
    while isinstance(error, errors.RayTaskError) and error.cause is not None:
        error = error.cause
    gone = isinstance(error, errors.ObjectLostError | errors.NodeDiedError | errors.WorkerCrashedError)
    if gone or (isinstance(error, errors.RayActorError) and not error.actor_init_failed):
        return Lost(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")
    return error
