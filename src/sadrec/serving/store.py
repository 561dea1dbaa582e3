"""The model that answers now, and its exchange for another when the file changes."""

import asyncio
import logging
from pathlib import Path

from sadrec.serving.metrics import Metrics
from sadrec.serving.served import Served
from sadrec.serving.settings import ServeSettings
from sadrec.serving.verbs import warm_up

logger = logging.getLogger("sadrec.serving")

Signature = tuple[tuple[int, int, int] | None, ...]


def loaded(settings: ServeSettings) -> Served:
    """Load what is to be served, verified and warmed up."""
    served = Served.load(settings)
    warm_up(served)
    return served


class Store:
    """Holds what is served. A request takes :attr:`current` once and answers from it alone."""

    def __init__(self, settings: ServeSettings, metrics: Metrics, served: Served | None = None) -> None:
        self.settings, self.metrics = settings, metrics
        self.current: Served | None = None
        self.draining = False
        self._seen: Signature = ()
        if served is not None:
            self._take(served)

    def load(self) -> None:
        """Load what the settings name; an error is raised and the model that answers stays."""
        self._seen = self.signature()
        self._take(loaded(self.settings))

    def _take(self, served: Served) -> None:
        self.current = served
        self.metrics.model(served.digest)

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
        while self.settings.reload_seconds:
            await asyncio.sleep(self.settings.reload_seconds)
            await self.look()

    async def look(self) -> bool:
        """Reload if a file has changed; tell whether another model answers now."""
        now = self.signature()
        if now == self._seen or None in now:
            return False
        self._seen = now
        try:
            served = await asyncio.to_thread(loaded, self.settings)
        except Exception as error:  # whatever is wrong with a file, the old model goes on answering
            logger.error("the model that answers stays, because the changed file cannot be used: %s", error)
            self.metrics.reload_errors.inc()
            if isinstance(error, MemoryError | OSError):
                self._seen = ()
            return False
        self._take(served)
        self.metrics.reloads.inc()
        logger.info("model %s answers from now on", served.digest)
        return True
