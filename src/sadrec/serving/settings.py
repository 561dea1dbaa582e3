"""Settings of the service, and the bounds of questions."""

import json
from dataclasses import asdict, dataclass

MOST_N = 1000
"""Items in an answer, at most."""
MOST_IDS = 1000
"""Ids in a list of a question, at most."""
MOST_PLAYERS = 200
"""Items that play each other, at most: time grows with the cube of their number."""
MOST_BODY = 1 << 20
"""Bytes of a question, at most."""
MOST_EVENTS = 1000
"""Answers of people in one request to log, at most."""
MOST_USERS = 2000
"""Users asked to find what beats an item."""
MOST_FEATURES = 4096
"""Features of one person or item in a question, at most."""
MOST_NEW = 100
"""New items in a question, at most."""

MOST_AT_ONCE = 256
"""Requests that a worker answers at once, at most, besides those for known users, which take no time."""
MOST_CONNECTIONS = 1000
"""Connections of a worker beyond which it refuses what takes time."""
MOST_HEAD = 1 << 16
"""Bytes of the head of a request, at most."""


@dataclass(frozen=True)
class ServeSettings:
    """The settings of ``sadrec serve``.

    Attributes
    ----------
    model, posterior, items
        Paths: of the model; of a posterior on the same ids; of a table with the items' titles and pictures.
    log, log_megabytes
        Where people's answers are appended, and the size at which the file is put aside for a new one; 0 for never.
    keys
        Path of the file of hashed API keys; None: no key is asked for.
    cors
        Origins whose pages may ask from a browser; by default none but the service's own.
    reload_seconds
        How often the files are looked at for a change; 0 for never.
    mmap
        Leave the model in its file. Workers then share its memory, but the file may only be replaced, as
        ``model.save`` does, and never be written to.
    drain_seconds
        How long open connections are given when a worker ends.
    request_seconds
        How long a request may take to arrive: from its first byte, or from the connection, to its last.
    stall_seconds
        How long a connection may take no byte of its answer before it is closed.
    connections_per_address
        Connections that one address may have to a worker; 0 for any number. All clients of a proxy have its address.
    """

    model: str
    posterior: str | None = None
    items: str | None = None
    log: str | None = None
    log_megabytes: int = 64
    keys: str | None = None
    cors: tuple[str, ...] = ()
    reload_seconds: float = 2.0
    mmap: bool = False
    drain_seconds: float = 5.0
    request_seconds: float = 20.0
    stall_seconds: float = 20.0
    connections_per_address: int = 0

    def to_json(self) -> str:
        """Return the settings as text, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ServeSettings":
        """Return the settings that :meth:`to_json` wrote."""
        given = json.loads(text)
        return cls(**{**given, "cors": tuple(given["cors"])})

    @property
    def files(self) -> list[str]:
        """The files whose change makes a reload."""
        return [path for path in (self.model, self.posterior, self.items) if path is not None]
