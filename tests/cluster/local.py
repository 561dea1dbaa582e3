"""Workers in this process in the place of actors: for whole fits without a cluster."""

from types import SimpleNamespace
from typing import ClassVar

from campaigns._workers import WorkersHere
from sadrec.cluster import Ray
from sadrec.cluster.actors import Lost


class Local(WorkersHere):
    """Workers in this process; ``lost`` are the methods with which a worker is lost, once each."""

    lost: ClassVar[list] = []
    started: ClassVar[list] = []

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.ended = False
        self.started.append(self)

    def call(self, worker, method, *arguments, returns=None):
        name = method.split(".")[-1]
        if self.ended or name in self.lost:
            self.lost[:] = [one for one in self.lost if one != name]
            raise Lost(f"nobody does {name}")
        return super().call(worker, method, *arguments, returns=returns)

    def end(self):
        self.ended = True


class Engine(Ray):
    """The engine without a cluster."""

    def _connect(self):
        return False


def take_the_place_of_actors(monkeypatch, kind=Local):
    """Have fits use workers in this process."""
    from sadrec.cluster import shared

    monkeypatch.setattr(shared, "Actors", kind)
    monkeypatch.setattr(shared, "ray", lambda: SimpleNamespace(put=lambda value: value))
    monkeypatch.setattr(Local, "lost", [])
    monkeypatch.setattr(Local, "started", [])
    return kind
