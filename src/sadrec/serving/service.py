"""What stands around the routes: keys, bounds, metrics, one model per request, and the direct path of one question.

``GET /v1/recommend`` for a known user, which is most of what a service is asked, is answered here: that takes less time
than finding the route would.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl

from pydantic import TypeAdapter

from sadrec.serving import verbs
from sadrec.serving.events import EventLog
from sadrec.serving.keys import Keys
from sadrec.serving.problems import NotKeptError, Unanswerable
from sadrec.serving.questions import Events, Number
from sadrec.serving.served import Served, dumps
from sadrec.serving.settings import MOST_AT_ONCE, MOST_BODY, MOST_CONNECTIONS, ServeSettings
from sadrec.serving.store import Store, again_and_again, aside

logger = logging.getLogger("sadrec.serving")

Scope = MutableMapping[str, Any]

_NUMBER = TypeAdapter(Number)

_OPEN = ("/livez", "/readyz")
"""What is answered without a key and without a model."""
_ALWAYS = (*_OPEN, "/metrics")
"""What is answered however much is asked: a busy service is not a dead one."""
_KEY_SECONDS = 1.0
"""How often the file of keys is looked at: a key that is withdrawn must not wait for the next look at a model."""
_KEY_PATIENCE = 10.0
"""Seconds after which a file of keys that cannot be read allows nobody."""
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:%b; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class _TooLong(Exception):
    """The body of a request is longer than allowed."""


class Service:
    """An ASGI application around another."""

    app: Any

    def __init__(self, settings: ServeSettings, store: Store) -> None:
        self.settings, self.store, self.metrics = settings, store, store.metrics
        self.keys = None if settings.keys is None else Keys(settings.keys)
        self.log = None if settings.log is None else EventLog(settings.log, settings.log_megabytes << 20)
        self.on_failure: Callable[[Exception], object] = lambda error: logger.error("no model: %s", error)
        self.entry: Any = self.answer
        self.connections: Collection[Any] = ()  # of the server, which puts them here
        self.stalled = 0  # how many of them do not read their answer
        self._at_once = 0
        self._direct_seconds = self.metrics.seconds.labels("recommend")
        self._direct_requests = self.metrics.requests.labels("recommend", "200")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the model if none is there, and watch the files, for as long as the server runs."""
        tasks = [asyncio.create_task(self._load_and_watch())]
        if self.keys is not None:
            tasks.append(asyncio.create_task(self._watch_keys()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self.log is not None:
                self.log.close()

    async def _load_and_watch(self) -> None:
        if self.store.current is None:
            try:
                await self.store.load()
            except Exception as error:  # there is nothing to serve
                self.on_failure(error)
                return
        await self.store.watch()

    async def _watch_keys(self) -> None:
        keys = self.keys
        assert keys is not None

        async def look() -> None:
            try:
                await aside(keys.refresh, _KEY_PATIENCE)
            except TimeoutError as error:
                keys.refuse_all(error)
                raise

        await again_and_again(look, _KEY_SECONDS)

    def keep(self, served: Served, asked: Events) -> int:
        """Append people's answers to the log; return how many."""
        if self.log is None:
            raise Unanswerable("answers are not kept: start the service with --log FILE")
        now = round(time.time(), 3)
        lines = []
        for event in asked.events:
            winner, loser = (served.entry(served.item_id(side))["item"] for side in (event.winner, event.loser))
            if winner == loser:
                raise Unanswerable(f"item {winner!r} is compared with itself: give two different items")
            lines.append({"user": event.user, "winner": winner, "loser": loser, "time": now, "model": served.digest})
        try:
            self.log.append(lines)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise NotKeptError(f"the answers were not kept ({why}): free some space, then send them again") from None
        self.metrics.events.inc(len(lines))
        return len(lines)

    # -- a request ----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request, through what was put around :meth:`answer`."""
        await self.entry(scope, receive, send)

    async def answer(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request: ask for a key, then directly or by the routes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        path: str = scope["path"]
        served = self.store.current
        if self.keys is not None and not self._is_open(path) and not self.keys.allow(scope["headers"]):
            told = "this key is not known" if self.keys.given(scope["headers"]) else "a key is needed"
            error = f"{told}: send Authorization: Bearer KEY, which `sadrec key` makes"
            await self._refuse(scope, send, 401, error, served, (b"www-authenticate", b"Bearer"))
            return
        if path == "/v1/recommend" and served is not None and scope["method"] == "GET":
            body = self._direct(served, scope["query_string"])
            if body is not None:
                await self._reply(path, send, 200, body, served)
                self._direct_requests.inc()
                self._direct_seconds.observe(time.perf_counter() - began)
                return
        if served is None and path.startswith("/v1/"):
            error = "the model is still being loaded: ask again in a moment"
            await self._refuse(scope, send, 503, error, None, (b"retry-after", b"1"))
            return
        full = self._at_once >= MOST_AT_ONCE or len(self.connections) - self.stalled > MOST_CONNECTIONS
        if full and path not in _ALWAYS:
            error = "too much is asked at once: ask again in a moment, or start the service with more --workers"
            await self._refuse(scope, send, 503, error, served, (b"retry-after", b"1"))
            return
        await self._through(scope, receive, send, served, began)

    @staticmethod
    def _direct(served: Served, query: bytes) -> bytes | None:
        """Answer for a known user and a number alone, as the route would; None leaves the question to it."""
        given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))  # as the route reads it
        if "user" not in given or not given.keys() <= {"user", "N"}:
            return None
        try:
            answer = verbs.recommend_known(served, given["user"], _NUMBER.validate_python(given.get("N", 10)))
        except Exception:  # the route says what is wrong
            return None
        return None if answer is None else dumps(answer)

    def _is_open(self, path: str) -> bool:
        """Whether a path needs no key: health, and the page itself, which holds nothing of the model."""
        return path in _OPEN or not (path.startswith("/v1/") or path == "/metrics")

    async def _refuse(
        self, scope: Scope, send: Any, status: int, error: str, served: Served | None, header: tuple[bytes, bytes]
    ) -> None:
        body = dumps({"error": error, "model": None if served is None else served.digest})
        self.metrics.requests.labels(_verb(scope["path"]), str(status)).inc()
        await self._reply(scope["path"], send, status, body, served, header)

    async def _reply(
        self, path: str, send: Any, status: int, body: bytes, served: Served | None, *more: tuple[bytes, bytes]
    ) -> None:
        """Send an answer with the headers that one of the routes has."""
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"), *more]
        headers += self._added(path, served)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _through(self, scope: Scope, receive: Any, send: Any, served: Served | None, began: float) -> None:
        """Let the routes answer, with a bounded body and the model's hash in the header."""
        scope["served"] = served
        status, length, too_long = 500, 0, False
        verb, working = _verb(scope["path"]), True
        self._at_once += 1

        def worked() -> None:
            """Count the work as done: how long the client takes to read is its own affair."""
            nonlocal working
            if working:
                working = False
                self._at_once -= 1
                self.metrics.seconds.labels(verb).observe(time.perf_counter() - began)

        async def told(message: Any) -> None:
            worked()
            await send(message)

        async def bounded() -> Any:
            nonlocal length, too_long
            message = await receive()
            if message["type"] == "http.request":
                length += len(message.get("body", b""))
                if length > MOST_BODY:
                    too_long = True
                    raise _TooLong
            return message

        started = False

        async def named(message: Any) -> None:
            nonlocal status, started
            if too_long:
                return  # what the routes make of it is not what happened
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                message = {**message, "headers": [*message.get("headers", []), *self._added(scope["path"], served)]}
            await told(message)

        try:
            declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            if declared.isdigit() and int(declared) > MOST_BODY:
                raise _TooLong
            await self.app(scope, bounded, named)
            if too_long:
                raise _TooLong
        except _TooLong:
            error = f"the body is longer than {MOST_BODY} bytes: ask about less at a time"
            await self._refuse(scope, told, 413, error, served, (b"connection", b"close"))
            return
        except Exception:
            logger.exception("a request to %s failed", scope["path"])
            self.metrics.errors.inc()
            if not started:
                await self._refuse(scope, told, 500, "a fault of the service; it is logged", served, _NOTHING)
            return
        finally:
            worked()
            if started:
                self.metrics.requests.labels(verb, str(status)).inc()

    def _added(self, path: str, served: Served | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of every answer: which model gave it, and what keeps browsers from foreign content."""
        headers = [] if served is None else [served.header]
        if self.store.draining:
            headers.append((b"connection", b"close"))
        headers.append((b"x-content-type-options", b"nosniff"))
        if not path.startswith(("/v1/", "/openapi")):
            pictures = b" https:" if served is not None and served.items.has_pictures else b""
            headers += [(b"content-security-policy", _POLICY % pictures), (b"referrer-policy", b"no-referrer"), _FRESH]
        return headers


_NOTHING = (b"cache-control", b"no-store")
_FRESH = (b"cache-control", b"no-cache")  # a browser asks whether the page is still the same
_VERBS = frozenset(
    (
        *("describe", "recommend", "groups", "prefer", "margins", "rank", "cycles", "explain", "similar", "question"),
        *("visitor", "slate", "nemesis", "arena", "worth", "items", "users", "popular", "events"),
    )
)


def _verb(path: str) -> str:
    """Return the verb of a path, one of few: names made up by clients must not become figures."""
    if path.startswith("/v1/"):
        name = path[4:].split("/", 1)[0]
        return name if name in _VERBS else "unknown"
    return path[1:] if path in _ALWAYS else "page"
