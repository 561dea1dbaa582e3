"""Workers in this process in the place of actors: for whole fits without a cluster."""

from types import SimpleNamespace
from typing import ClassVar

from sadrec.cluster import Ray
from sadrec.cluster.actors import Lost
from tests.cluster.test_conductor import Here


class Local(Here):
    """Workers in this process; ``lost`` are the methods with which a worker is lost, once each."""

    lost: ClassVar[list] = []
    started: ClassVar[list] = []

    def __init__(self, kind, count, threads, seconds, *given, at_least):
        super().__init__([kind(number, count, *given, threads) for number in range(count)])
        self.places, self.ended = [("here", 0)] * count, False
        self.started.append(self)

    def call(self, worker, method, *arguments, returns=1):
        if self.ended or method in self.lost:
            self.lost[:] = [name for name in self.lost if name != method]
            raise Lost(f"nobody does {method}")
        return super().call(worker, method, *arguments, returns=returns)

    def end(self):
        self.ended = True


class Engine(Ray):
    """The engine without a cluster."""

    def _connect(self):
        return False


def take_the_place_of_actors(monkeypatch, kind=Local):
    """Have fits use workers in this process."""
    from sadrec.cluster import run, shared

    for module in (run, shared):
        monkeypatch.setattr(module, "Actors", kind)
        monkeypatch.setattr(module, "ray", lambda: SimpleNamespace(put=lambda value: value))
    monkeypatch.setattr(Local, "lost", [])
    monkeypatch.setattr(Local, "started", [])
    return kind
