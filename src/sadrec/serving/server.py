"""One process that answers: ``python -m sadrec.serving.server``, started by ``run`` with a socket and settings."""

import asyncio
import ctypes
import fcntl
import logging
import os
import signal
import socket
import struct
import sys
import termios
from collections import Counter
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sadrec.serving.metrics import Metrics, take_slot
from sadrec.serving.middleware import Service
from sadrec.serving.reload import Reloader
from sadrec.serving.routes import create_app
from sadrec.serving.settings import MOST_CONNECTIONS, MOST_HEAD, ServeSettings
from sadrec.serving.supervisor import SETTINGS, SLOWEST, UNUSABLE, log_without_waiting

logger = logging.getLogger("sadrec.serving")

_ROUNDS = 1000
"""Rounds of the loop in which the last worker waits for the queue to be empty."""
MOST_UNTAKEN = 1 << 12
"""Bytes of answers that a client may leave untaken when its next request is answered."""
_PIECE = 1 << 12
"""Bytes that are parsed at once: the requests in them are all that a connection has waiting."""
_LONG_HEAD = b"431 Request Header Fields Too Large"
_GRACE = 0.5
"""Seconds that the last worker still accepts after a signal to end, and that a client may then be silent."""
_HANDSHAKE = 0.2
"""Seconds that connections which clients have begun to open take at most to be in the queue."""
_DROP_NEW = ((0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 2**32 - 1))
"""A filter of packets (BPF): of the flags in byte 13, SYN without ACK is dropped; all others are kept."""
_SO_ATTACH_FILTER = 26


class HeldFlow(FlowControl):
    """Flow control that reads nothing more while a connection holds bytes that are not parsed."""

    holds = False

    def resume_reading(self) -> None:
        """Read on, unless the connection holds bytes."""
        if not self.holds:
            super().resume_reading()


def protocol_of(settings: ServeSettings) -> type[HttpToolsProtocol]:
    """Return the protocol of connections: a request that does not arrive within some seconds ends its connection.

    Otherwise a client that sends a byte now and then could hold all connections. Where the connections of an address
    are bounded, one more is refused. A client that sends requests without taking the answers costs next to nothing:
    what it sends is not parsed until the answers before are on their way.
    """
    patience, most = settings.request_seconds, settings.connections_per_address
    addresses: Counter[str] = Counter()

    class BoundedProtocol(HttpToolsProtocol):
        _arriving, _head, _fields = False, 0, 0
        _timer: asyncio.TimerHandle | None = None
        _answered: Any = None  # the request that is being answered; others may have arrived after it

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.flow: HeldFlow = HeldFlow(transport)
            self._held = bytearray()  # bytes that have arrived and are not parsed
            self._timer = self.loop.call_later(patience, self._end_slow)
            self._address = self.client[0] if self.client else ""
            addresses[self._address] += 1
            if most and addresses[self._address] > most:
                self._refuse(b"429 Too Many Requests")

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            self._held.clear()
            addresses[self._address] -= 1
            if not addresses[self._address]:
                del addresses[self._address]
            if self._answered is not None:
                self._answered.disconnected = True
                self._answered.message_event.set()
            super().connection_lost(exc)

        def _start_asgi_task(self, cycle: Any, app: Any, pause: float = 0.001) -> None:
            """Answer a request when the client has taken most of the answers before it; until then, read no more."""
            self._answered = cycle
            if cycle.disconnected:
                return
            if _untaken(self.transport) > MOST_UNTAKEN:
                self.flow.pause_reading()
                self.loop.call_later(pause, self._start_asgi_task, cycle, app, min(2 * pause, 0.25))
            else:
                super()._start_asgi_task(cycle, app)

        def on_message_begin(self) -> None:
            self._arriving, self._head, self._fields = True, 1, 0
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._fields += len(url)
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._fields += len(name) + len(value)
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._head = 0
            if self._fields > MOST_HEAD:  # all of it came at once
                self._refuse(_LONG_HEAD)
            else:
                super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._arriving = False
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            self._held += data
            self._parse()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._parse()

        def _parse(self) -> None:
            """Parse what has arrived, up to a request that waits for the answer before it."""
            while self._held and not self.pipeline and not self.transport.is_closing():
                piece = bytes(self._held[:_PIECE])
                del self._held[:_PIECE]
                super().data_received(piece)
                if self._head:
                    self._head += len(piece)
                    if self._head > MOST_HEAD:
                        self._refuse(_LONG_HEAD)
            if self.transport.is_closing():
                return
            self.flow.holds = bool(self._held)
            if self._held:
                self.flow.pause_reading()
            elif not self.pipeline:
                self.flow.resume_reading()
            if self._held or not self._arriving:
                self._stop()
            elif self._timer is None:
                self._timer = self.loop.call_later(patience, self._end_slow)

        @property
        def idle(self) -> bool:
            """Whether no request is arriving or waiting for its answer."""
            return not self._arriving and (self.cycle is None or self.cycle.response_complete)

        def hasten(self) -> None:
            """Close the connection if its request has not arrived yet; otherwise it gets its answer."""
            if self._arriving:
                self._end_slow()

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _end_slow(self) -> None:
            self._refuse(b"408 Request Timeout")

        def _refuse(self, status: bytes) -> None:
            """Close the connection, with a word about the reason unless an answer is on its way."""
            self._stop()
            if self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(b"HTTP/1.1 %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
            self.transport.close()

    return BoundedProtocol


def _untaken(transport: asyncio.Transport) -> int:
    """Return the number of bytes that a client has not taken yet, here and in the system's queue."""
    left = transport.get_write_buffer_size()
    with suppress(OSError):  # the connection is closed already
        queue = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        left += int.from_bytes(queue, sys.byteorder)
    return left


async def end_stalled(service: Service) -> None:
    """Close connections that take no byte of their answer for some seconds; let the service know how many wait."""
    clock, settings = asyncio.get_running_loop().time, service.settings
    waiting: dict[Any, tuple[int, float]] = {}  # bytes that are left, and since when; more are left after an answer
    while True:
        most = (
            min(settings.stall_seconds, settings.drain_seconds) if service.reloader.draining else settings.stall_seconds
        )
        await asyncio.sleep(min(1.0, most / 4))
        now, before, waiting = clock(), waiting, {}
        for connection in list(service.connections):
            if left := _untaken(connection.transport):
                last, since = before.get(connection, (left, now))
                waiting[connection] = left, now if left != last else since
                if left == last and now - since >= most:
                    connection.transport.abort()
        service.stalled = len(waiting)


class Server(uvicorn.Server):
    """A server that stops without losing a request: it first asks its clients to leave, and then closes."""

    def __init__(
        self, config: uvicorn.Config, listening: socket.socket, settings: ServeSettings, reloader: Any
    ) -> None:
        super().__init__(config)
        self.listening, self.settings, self.reloader = listening, settings, reloader
        self.failed = False
        self._all_end = False  # only then may the socket, which all workers share, take no new connections
        self._ending: asyncio.Task[None] | None = None

    def install(self) -> None:
        """Listen to signals: this worker is to end, another one takes its place, or the whole service ends."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end, True)
        loop.add_signal_handler(signal.SIGUSR1, self.end, False)
        loop.add_signal_handler(signal.SIGUSR2, self.end_with_all)

    def end(self, last: bool) -> None:
        """Begin to end."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._drain(last))

    def end_with_all(self) -> None:
        """Begin to end with the whole service; a signal to this worker may have come first."""
        self._all_end = True
        self.end(True)

    def fail(self, error: Exception) -> None:
        """End at once: there is no model to answer with."""
        logger.error("%s", error)
        self.failed = True
        self.should_exit = True

    async def _drain(self, last: bool) -> None:
        """Let every connection end with its next answer, which says so; accept nothing new; then exit.

        A connection on which nothing is asked for a moment is closed. If nobody else will accept, this worker does so a
        little longer, while ``/readyz`` tells balancers to go away.
        """
        self.reloader.draining = True
        clock = asyncio.get_running_loop().time
        idle_since = dict.fromkeys(self._idle(), clock())
        if last:
            await asyncio.sleep(min(_GRACE, self.settings.drain_seconds))
        if self._all_end:
            if _drop_new(self.listening):
                await asyncio.sleep(min(_HANDSHAKE, self.settings.drain_seconds))
            else:
                self.listening.listen(0)
            for _ in range(_ROUNDS):  # who is in the queue when it is closed would be cut off
                await asyncio.sleep(0)
                if not _waiting(self.listening):
                    break
        for server in self.servers:
            server.close()
        deadline = clock() + self.settings.drain_seconds
        while self.server_state.connections and clock() < deadline:
            for connection in self._idle():
                if clock() - idle_since.setdefault(connection, clock()) >= _GRACE:
                    connection.shutdown()
            await asyncio.sleep(0.02)
        for connection in list(self.server_state.connections):
            connection.hasten()  # type: ignore[union-attr]  # they are of the class above
        self.should_exit = True

    def _idle(self) -> list[Any]:
        """Return the connections on which nothing is asked."""
        return [one for one in self.server_state.connections if one.idle]  # type: ignore[union-attr]


def _drop_new(listening: socket.socket) -> bool:
    """Let no client open a connection any more: to each it seems that nothing has arrived. Linux only; else False.

    A connection that is opened between the last look at the queue and the end of the socket would be cut off.
    """
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in _DROP_NEW))
    with suppress(OSError):
        listening.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_DROP_NEW), ctypes.addressof(program))
        )
        return True
    return False


def _waiting(listening: socket.socket) -> int:
    """Return how many connections wait to be accepted, where the system tells (Linux)."""
    if not hasattr(socket, "TCP_INFO"):
        return 0
    with suppress(OSError):
        info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return int.from_bytes(info[24:28], sys.byteorder)  # tcpi_unacked: of a listening socket, its queue
    return 0


async def answer(settings: ServeSettings, listening: socket.socket, replacing: bool) -> int:
    """Serve until a signal ends the process; return the exit code."""
    reloader = Reloader(settings, Metrics())
    if replacing:  # others answer meanwhile
        try:
            await reloader.load()
        except Exception as error:
            logger.error("%s", error)
            return 1
    service = create_app(settings, reloader=reloader)
    config = uvicorn.Config(
        service,
        http=protocol_of(settings),
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SLOWEST,
        backlog=2048,
    )
    server = Server(config, listening, settings, reloader)
    service.connections = server.server_state.connections
    service.on_failure = server.fail
    server.install()
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(_tell(reloader)), loop.create_task(end_stalled(service))]
    _end_with_parent(server)
    await server._serve([listening])
    for task in tasks:
        task.cancel()
    return UNUSABLE if server.failed else 0


async def _tell(reloader: Reloader) -> None:
    """Report to the supervisor when the model is loaded."""
    while reloader.current is None:
        await asyncio.sleep(0.02)
    with suppress(OSError):
        os.write(0, b"ready")


def _end_with_parent(server: Server) -> None:
    """End when standard input, a socket of the supervisor, is closed: the supervisor is gone."""
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(0)
        server.end_with_all()

    loop.add_reader(0, gone)


def allow_connections() -> None:
    """Raise the limit of open files as far as allowed, so that connections are refused by us and not by chance."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def main() -> None:
    """Run a worker."""
    log_without_waiting()
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    settings = ServeSettings.from_json(os.environ.pop(SETTINGS))
    allow_connections()
    listening = socket.socket(fileno=int(sys.argv[1]))
    take_slot()
    factory = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    # Not by sys.exit, which waits for all threads: one of them may wait for a disk that does not answer.
    os._exit(asyncio.Runner(loop_factory=factory).run(answer(settings, listening, sys.argv[2] == "1")))


if __name__ == "__main__":
    main()
