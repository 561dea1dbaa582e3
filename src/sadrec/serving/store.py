"""The model that answers now, and its exchange for another when the file changes."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from sadrec.serving.metrics import Metrics
from sadrec.serving.served import Served
from sadrec.serving.settings import ServeSettings
from sadrec.serving.verbs import warm_up

logger = logging.getLogger("sadrec.serving")

Signature = tuple[tuple[int, int, int] | None, ...]
T = TypeVar("T")

LOAD_SECONDS = 300.0
"""Seconds that a load may take: a disk that does not answer may take for ever."""


def loaded(settings: ServeSettings) -> Served:
    """Load what is to be served, verified and warmed up."""
    served = Served.load(settings)
    warm_up(served)
    return served


async def aside(work: Callable[[], T], seconds: float) -> T:
    """Do some work in a thread of its own, which nobody waits for any longer: a process may end without it."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled, and takes a late result

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        async with asyncio.timeout(seconds):  # wait_for may lose the cancellation that ends a service
            return await asyncio.wrap_future(future)
    except TimeoutError:
        raise TimeoutError(f"the disk did not answer within {seconds:g} s") from None


async def again_and_again(look: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Look every few seconds; less often while the disk does not answer, for every such look holds a thread."""
    pause = seconds
    while pause:
        await asyncio.sleep(pause)
        try:
            await look()
            pause = seconds
        except TimeoutError:
            pause = min(2 * pause, 60.0)


class Store:
    """Holds what is served. A request takes :attr:`current` once and answers from it alone."""

    def __init__(self, settings: ServeSettings, metrics: Metrics, served: Served | None = None) -> None:
        self.settings, self.metrics = settings, metrics
        self.current: Served | None = None
        self.draining = False
        self.problem: str | None = None  # why a changed file does not answer
        self._seen: Signature = ()
        if served is not None:
            self._take(served)

    async def load(self) -> None:
        """Load what the settings name; an error is raised and the model that answers stays."""
        self._seen, served = await aside(lambda: (self.signature(), loaded(self.settings)), LOAD_SECONDS)
        self._take(served)

    def _take(self, served: Served) -> None:
        self.current = served
        self.metrics.model(served.digest)
        self._note(None)

    def _note(self, problem: str | None) -> None:
        self.problem = problem
        self.metrics.unusable.set(problem is not None)

    def signature(self) -> Signature:
        """Return what changes when one of the files does."""
        found: list[tuple[int, int, int] | None] = []
        for path in self.settings.files:
            try:
                status = Path(path).stat()
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                found.append(None)
        return tuple(found)

    async def watch(self) -> None:
        """Look at the files again and again; load what has changed beside what answers, then let it answer.

        A file that cannot be used leaves the old model, counts as an error and is tried again when it changes; at the
        next look, if it was memory or open files that there were too few of.
        """
        await again_and_again(self.look, self.settings.reload_seconds)

    async def look(self) -> bool:
        """Reload if a file has changed; tell whether another model answers now."""
        try:
            now = await aside(self.signature, LOAD_SECONDS)
            if now == self._seen:
                return False
            self._seen = now
            if None in now:  # it may just be exchanged
                self._note(f"there is no file {self.settings.files[now.index(None)]!r}")
                return False
            served = await aside(lambda: loaded(self.settings), LOAD_SECONDS)
        except Exception as error:  # whatever is wrong with a file, the old model goes on answering
            logger.error("the model that answers stays, because the changed file cannot be used: %s", error)
            self._note(str(error))
            self.metrics.reload_errors.inc()
            if isinstance(error, MemoryError | OSError):
                self._seen = ()
            if isinstance(error, TimeoutError):
                raise
            return False
        self._take(served)
        self.metrics.reloads.inc()
        logger.info("model %s answers from now on", served.digest)
        return True
