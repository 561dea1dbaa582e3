"""Middleware: keys, bounds, metrics, and one model per request."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from sadrec.serving import verbs
from sadrec.serving.events import EventLog
from sadrec.serving.keys import Keys
from sadrec.serving.loaded import Loaded, refusal
from sadrec.serving.problems import NotKeptError, Unanswerable
from sadrec.serving.questions import Events
from sadrec.serving.reload import Reloader, in_thread, repeatedly
from sadrec.serving.settings import MOST_AT_ONCE, MOST_BODY, MOST_CONNECTIONS, ServeSettings

logger = logging.getLogger("sadrec.serving")

Scope = MutableMapping[str, Any]

_OPEN = ("/livez", "/readyz")
"""Paths that need no key and no model."""
_ALWAYS = (*_OPEN, "/metrics")
"""Paths that are answered at any load: a busy service is not a dead one."""
TOO_MANY = "too many requests at once: try again in a moment, or start the service with more --workers"
SOON = {"Retry-After": "1"}
_KEY_SECONDS = 1.0
"""Seconds between looks at the file of keys: a withdrawn key must not wait for the next look at the model."""
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

    def __init__(self, settings: ServeSettings, reloader: Reloader, app: Any, recommend: Any) -> None:
        """Take the application, and what answers ``GET /v1/recommend`` in its place."""
        self.settings, self.reloader, self.metrics = settings, reloader, reloader.metrics
        self.app, self.recommend = app, recommend
        self.keys = None if settings.keys is None else Keys(settings.keys)
        self.log = None if settings.log is None else EventLog(settings.log, settings.log_megabytes << 20)
        self.on_failure: Callable[[Exception], object] = lambda error: logger.error("no model: %s", error)
        self.entry: Any = self.answer
        if settings.cors:
            from starlette.middleware.cors import CORSMiddleware

            self.entry = CORSMiddleware(  # around keys: a browser asks beforehand, without a key
                self.answer,
                allow_origins=list(settings.cors),
                allow_methods=["GET", "POST"],
                allow_headers=["Authorization", "X-API-Key", "Content-Type"],
                expose_headers=["X-Model"],
            )
        self.connections: Collection[Any] = ()  # of the server, which puts them here
        self.stalled = 0  # how many of them do not read their answer
        self._at_once = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the model unless one was given, and watch the files while the server runs."""
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
        if self.reloader.current is None:
            try:
                await self.reloader.load()
            except Exception as error:  # there is nothing to serve
                self.on_failure(error)
                return
        await self.reloader.watch()

    async def _watch_keys(self) -> None:
        keys = self.keys
        assert keys is not None

        async def look() -> None:
            try:
                await in_thread(keys.refresh, _KEY_PATIENCE)
            except TimeoutError as error:
                keys.refuse_all(error)
                raise

        await repeatedly(look, _KEY_SECONDS)

    def keep(self, loaded: Loaded, question: Events) -> int:
        """Append answers to the log; return their number."""
        if self.log is None:
            raise Unanswerable("answers are not kept: start the service with --log FILE")
        now = round(time.time(), 3)
        lines = []
        for event in question.events:
            winner, loser = loaded.shown(loaded.item_ids([event.winner, event.loser]))
            if winner == loser:
                raise Unanswerable(f"item {winner!r} is compared with itself: give two different items")
            lines.append({"user": event.user, "winner": winner, "loser": loser, "time": now, "model": loaded.digest})
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
        """Answer a request by the routes, unless it lacks a key, the model is not loaded, or the worker is full."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        path: str = scope["path"]
        loaded = self.reloader.current
        if self.keys is not None and not self._is_open(path) and not self.keys.allow(scope["headers"]):
            problem = "this key is not known" if self.keys.given(scope["headers"]) else "a key is needed"
            error = f"{problem}: send Authorization: Bearer KEY, which `sadrec key` makes"
            await self._refuse(scope, send, 401, error, loaded, {"WWW-Authenticate": "Bearer"})
            return
        if loaded is None and path.startswith("/v1/"):
            error = "the model is still being loaded: ask again in a moment"
            await self._refuse(scope, send, 503, error, None, SOON)
            return
        full = self._at_once >= MOST_AT_ONCE or len(self.connections) - self.stalled > MOST_CONNECTIONS
        app = self.recommend if path == "/v1/recommend" and scope["method"] == "GET" else self.app
        if full and path not in _ALWAYS and app is self.app:
            await self._refuse(scope, send, 503, TOO_MANY, loaded, SOON)
            return
        scope["loaded"], scope["full"] = loaded, full
        await self._through(app, scope, receive, send, began)

    def _is_open(self, path: str) -> bool:
        """Whether a path needs no key: health checks, and the page itself, which holds no data of the model."""
        return path in _OPEN or not (path.startswith("/v1/") or path == "/metrics")

    async def _refuse(
        self, scope: Scope, send: Any, status: int, error: str, loaded: Loaded | None, header: dict[str, str]
    ) -> None:
        self.metrics.requests.labels(_verb(scope["path"]), str(status)).inc()
        response = refusal(loaded, status, error, header)
        response.raw_headers += self._added(scope["path"], loaded)
        await response(scope, None, send)  # type: ignore[arg-type]  # it receives nothing

    async def _through(self, app: Any, scope: Scope, receive: Any, send: Any, began: float) -> None:
        """Let the routes answer, with a bounded body and the model's hash in the header."""
        loaded: Loaded | None = scope["loaded"]
        status, length, too_long = 0, 0, False  # 0: no answer has begun
        verb, working = _verb(scope["path"]), True
        self._at_once += 1

        def worked() -> None:
            """Stop the clock of the request: the time that the client takes to read does not count."""
            nonlocal working
            if working:
                working = False
                self._at_once -= 1
                self.metrics.seconds.labels(verb).observe(time.perf_counter() - began)

        async def bounded() -> Any:
            nonlocal length, too_long
            message = await receive()
            if message["type"] == "http.request":
                length += len(message.get("body", b""))
                if length > MOST_BODY:
                    too_long = True
                    raise _TooLong
            return message

        async def named(message: Any) -> None:
            nonlocal status
            if too_long:
                return  # what the routes make of it is not what happened
            worked()
            if message["type"] == "http.response.start":
                status = message["status"]
                # Before it is sent: whoever has the answer sees it counted, by any worker, even if this one is killed.
                self.metrics.requests.labels(verb, str(status)).inc()
                message = {**message, "headers": [*message.get("headers", []), *self._added(scope["path"], loaded)]}
            await send(message)

        try:
            declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            if declared.isdigit() and int(declared) > MOST_BODY:
                raise _TooLong
            await app(scope, bounded, named)
            if too_long:
                raise _TooLong
        except _TooLong:
            error = f"the body is longer than {MOST_BODY} bytes: ask about less at a time"
            worked()
            await self._refuse(scope, send, 413, error, loaded, {"Connection": "close"})
        except Exception:
            logger.exception("a request to %s failed", scope["path"])
            self.metrics.errors.inc()
            worked()
            if not status:
                await self._refuse(scope, send, 500, "a fault of the service; it is logged", loaded, {})
        finally:
            worked()

    def _added(self, path: str, loaded: Loaded | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of every answer: the model, and the content policy for browsers."""
        headers = [] if loaded is None else [loaded.header]
        if self.reloader.draining:
            headers.append((b"connection", b"close"))
        headers.append((b"x-content-type-options", b"nosniff"))
        if not path.startswith(("/v1/", "/openapi")):
            pictures = b" https:" if loaded is not None and loaded.items.has_pictures else b""
            headers += [(b"content-security-policy", _POLICY % pictures), (b"referrer-policy", b"no-referrer"), _FRESH]
        return headers


_FRESH = (b"cache-control", b"no-cache")  # a browser asks whether the page is still the same
_VERBS = frozenset(("events", *(verb.path.split("/")[0] for verb in verbs.VERBS)))


def _verb(path: str) -> str:
    """Return the verb of a path, from a fixed list: clients must not create metrics."""
    if path.startswith("/v1/"):
        name = path[4:].split("/", 1)[0]
        return name if name in _VERBS else "unknown"
    return path[1:] if path in _ALWAYS else "page"
