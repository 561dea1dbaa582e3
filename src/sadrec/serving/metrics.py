"""Metrics for Prometheus: latency per verb, requests, reloads, errors, and the number of workers by model."""

import os
from collections import Counter as Count
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily

from sadrec.serving.supervisor import FOLDER, SLOT

_BUCKETS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one worker; :meth:`page` shows those of all workers."""

    def __init__(self) -> None:
        self.folder = os.environ.get(FOLDER)
        registry = self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "sadrec_request_seconds", "Seconds per request.", ["verb"], buckets=_BUCKETS, registry=registry
        )
        self.seconds.labels("recommend")  # makes the file of several workers now: later, the disk may be full
        self.requests = Counter(
            "sadrec_requests", "Requests by verb and status.", ["verb", "status"], registry=registry
        )
        self.reloads = Counter("sadrec_reloads", "Models exchanged while running.", registry=registry)
        self.reload_errors = Counter("sadrec_reload_errors", "Changed files that could not be used.", registry=registry)
        self.unusable = Gauge(
            "sadrec_files_unusable",
            "Workers whose files changed to something that cannot be used; /readyz says why.",
            registry=registry,
            multiprocess_mode="sum",
        )
        self.unusable.set(0)  # also where a worker before it has left another figure
        self.events = Counter("sadrec_events", "Answers of people that were logged.", registry=registry)
        self.errors = Counter("sadrec_errors", "Requests that ended in an error of the service.", registry=registry)
        self._digest: str | None = None

    def model(self, digest: str) -> None:
        """Record the model that answers."""
        self._digest = digest
        if self.folder:
            Path(self.folder, f"model_{os.environ.get(SLOT, '0')}").write_text(digest)

    def page(self) -> bytes:
        """Return the figures of all workers."""
        registry = self.registry
        if self.folder:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, path=self.folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(_Models(self._digests()))

    def _digests(self) -> Count[str]:
        if not self.folder:
            return Count([self._digest] if self._digest else [])
        digests: Count[str] = Count()
        for path in Path(self.folder).glob("model_*"):
            with suppress(FileNotFoundError):  # its worker has just ended
                digests[path.read_text()] += 1
        return digests


class _Models:
    """The number of workers by model, as a registry of one metric."""

    def __init__(self, digests: Count[str]) -> None:
        self.digests = digests

    def collect(self) -> Iterator[Any]:
        family = GaugeMetricFamily("sadrec_model_info", "Workers that answer with a model.", labels=["hash"])
        for digest, workers in sorted(self.digests.items()):
            family.add_metric([digest], workers)
        yield family


def take_slot() -> None:
    """Use metric files named by the worker's number: files named by process id would pile up."""
    if os.environ.get(FOLDER):
        from prometheus_client import values

        slot = int(os.environ.get(SLOT, "0"))
        values.ValueClass = values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]
