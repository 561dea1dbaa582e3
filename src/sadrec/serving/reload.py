"""The model in use, and its exchange for another when the file changes."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from sadrec.serving.loaded import Loaded
from sadrec.serving.metrics import Metrics
from sadrec.serving.settings import ServeSettings
from sadrec.serving.verbs import warm_up

logger = logging.getLogger("sadrec.serving")

Signature = tuple[tuple[int, int, int] | None, ...]
T = TypeVar("T")

LOAD_SECONDS = 300.0
"""Seconds that a load may take: a disk that hangs never ends it."""


def load_warm(settings: ServeSettings) -> Loaded:
    """Load, verify and warm up a model."""
    loaded = Loaded.load(settings)
    warm_up(loaded)
    return loaded


async def in_thread(work: Callable[[], T], seconds: float) -> T:
    """Return the result of work in a thread of its own; after some seconds raise, and let the process end."""
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


async def repeatedly(look: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Call a function at intervals; at longer ones while the disk hangs, since every call holds a thread."""
    pause = seconds
    while pause:
        await asyncio.sleep(pause)
        try:
            await look()
            pause = seconds
        except TimeoutError:
            pause = min(2 * pause, 60.0)


class Reloader:
    """Holds what is loaded. A request takes :attr:`current` once and answers from it alone."""

    def __init__(self, settings: ServeSettings, metrics: Metrics, loaded: Loaded | None = None) -> None:
        self.settings, self.metrics = settings, metrics
        self.current: Loaded | None = None
        self.draining = False
        self.problem: str | None = None  # why a changed file does not answer
        self._seen: Signature = ()
        if loaded is not None:
            self._take(loaded)

    async def load(self) -> None:
        """Load what the settings name; an error is raised and the model that answers stays."""
        self._seen, loaded = await in_thread(lambda: (self.signature(), load_warm(self.settings)), LOAD_SECONDS)
        self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        self.current = loaded
        self.metrics.model(loaded.digest)
        self._note(None)

    def _note(self, problem: str | None) -> None:
        self.problem = problem
        self.metrics.unusable.set(problem is not None)

    def signature(self) -> Signature:
        """Return a signature that changes when one of the files does."""
        states: list[tuple[int, int, int] | None] = []
        for path in self.settings.files:
            try:
                status = Path(path).stat()
                states.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                states.append(None)
        return tuple(states)

    async def watch(self) -> None:
        """Watch the files; load a changed model while the old one answers, then exchange them.

        A file that cannot be used leaves the old model, counts as an error and is tried again when it changes; at the
        next look, if it was memory or open files that there were too few of.
        """
        await repeatedly(self.look, self.settings.reload_seconds)

    async def look(self) -> bool:
        """Reload if a file has changed; tell whether another model answers now."""
        try:
            now = await in_thread(self.signature, LOAD_SECONDS)
            if now == self._seen:
                return False
            self._seen = now
            if None in now:  # it may just be exchanged
                self._note(f"there is no file {self.settings.files[now.index(None)]!r}")
                return False
            loaded = await in_thread(lambda: load_warm(self.settings), LOAD_SECONDS)
        except Exception as error:  # whatever is wrong with a file, the old model goes on answering
            logger.error("the model that answers stays, because the changed file cannot be used: %s", error)
            self._note(str(error))
            self.metrics.reload_errors.inc()
            if isinstance(error, MemoryError | OSError):
                self._seen = ()
            if isinstance(error, TimeoutError):
                raise
            return False
        self._take(loaded)
        self.metrics.reloads.inc()
        logger.info("model %s answers from now on", loaded.digest)
        return True
