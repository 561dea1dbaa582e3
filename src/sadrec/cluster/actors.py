"""Workers as actors of Ray: each in a process of its own, on whatever node has room for it."""

import importlib
import logging
import os
from contextlib import suppress
from operator import attrgetter
from typing import Any

from sadrec.cluster.shuffle import Shuffle
from sadrec.cluster.worker import Worker
from sadrec.training.given import Pairs
from sadrec.training.settings import Settings

logger = logging.getLogger("sadrec")


_AGAIN = 2.0  # seconds to wait for a place for one worker less
_LOOK = 2.0  # seconds after which to see whether workers that start still have their places


class Lost(Exception):
    """A worker, a node or what it held is gone; nothing is wrong with what was asked."""


def ray() -> Any:
    """Return Ray, or say how to get it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # what is lost is said once, in our words
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("a cluster needs Ray: pip install 'sadrec[ray]'") from error


class Actor:
    """What Ray calls: the data of a worker and, while a fit lasts, what trains on it.

    Arrays from Ray's store cannot be written to, and are shared by the actors of a node.
    """

    def __init__(self, number: int, workers: int, threads: int) -> None:
        self.data, self._threads = Shuffle(number, workers), threads
        self.training: Worker

    def begin(self, settings: Settings, longest: int, scale: float, comparisons: Pairs | None) -> None:
        """Be ready for a fit: see :class:`~sadrec.cluster.worker.Worker`."""
        self.training = Worker(self.data, settings, longest, scale, comparisons, self._threads)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method: ``data.read``, ``training.train``, ..."""
        return attrgetter(name)(self)(*arguments)

    def where(self) -> tuple[str, int]:
        """Return the node and the process that this is."""
        return str(ray().get_runtime_context().get_node_id()), os.getpid()


class Actors:
    """Workers for a :class:`~sadrec.cluster.scheduler.Scheduler`, each an actor."""

    def __init__(self, count: int, threads: int, seconds: float, *, at_least: int) -> None:
        """Start ``count`` workers, or as many as find a place in time; fewer than ``at_least`` raise a ValueError."""
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
        """Have Ray set CPUs aside, on different nodes where it can."""
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
            f"there is no place for {at_least} workers with threads={threads} each: {free:g} CPUs are free, after "
            f"{seconds:g} s; lower workers or threads, or add nodes"
        )

    def _start(self, threads: int) -> None:
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        remote = ray().remote(Actor)
        for number in range(self.count):
            place = strategies.PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=number)
            options = {"num_cpus": threads, "max_restarts": 0, "scheduling_strategy": place}
            self._actors.append(remote.options(**options).remote(number, self.count, threads))
        asked = [actor.where.remote() for actor in self._actors]
        while len(ray().wait(asked, num_returns=len(asked), timeout=_LOOK)[0]) < len(asked):
            self._check_places()
        self.places: list[tuple[str, int]] = self.get(asked)

    def _check_places(self) -> None:
        """Raise Lost where a node is gone that a worker was to start on: Ray would wait for another one for ever."""
        state = importlib.import_module("ray.util").placement_group_table(self._group)["state"]
        if state != "CREATED":
            raise Lost(f"a node was lost while workers started ({state.lower()} places)")

    def call(self, worker: int, method: str, *arguments: Any, returns: int = 1) -> Any:
        """Have a worker do something after its earlier calls; return a reference, or ``returns`` of them, at once."""
        return self._actors[worker].call.options(num_returns=returns).remote(method, *arguments)

    def get(self, references: list[Any]) -> list[Any]:
        """Wait for answers and return them; raise Lost where a worker, a node or an object is gone."""
        try:
            return list(ray().get(references))
        except ray().exceptions.RayError as error:
            cause: BaseException = error
            while isinstance(cause, ray().exceptions.RayTaskError) and cause.cause is not None:
                cause = cause.cause
            if is_loss(cause):
                raise Lost(f"{type(cause).__name__}: {str(cause).splitlines()[0]}") from error
            raise cause from error

    def end(self) -> None:
        """End all of them; they are gone already where this process has left the cluster."""
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


def is_loss(error: BaseException) -> bool:
    """Tell whether an error means that something is gone, and not that something is wrong."""
    known = ray().exceptions
    gone = (known.ObjectLostError, known.NodeDiedError, known.WorkerCrashedError)
    return isinstance(error, gone) or (isinstance(error, known.RayActorError) and not error.actor_init_failed)
