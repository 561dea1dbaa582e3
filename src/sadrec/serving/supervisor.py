"""The supervisor, which starts, replaces and ends workers. It answers nothing itself, and loads no model.

- SIGTERM, SIGINT: workers answer the requests they have, ask their clients to leave, and end.
- SIGHUP: worker by worker, a new one is started, and when it is ready, the old one ends.
- A worker that died is replaced.

uvicorn's own supervisor cannot do it: its workers close idle connections at once, so that under load each replacement
loses requests that are on their way, and it waits without end for a worker that does not end.
"""

import asyncio
import logging
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sadrec.serving.settings import ServeSettings

logger = logging.getLogger("sadrec.serving")

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which workers put their figures together."""
SLOT = "SADREC_SERVE_SLOT"
"""The variable that tells a worker its number; a new worker takes that of one that has ended, and counts on."""
SETTINGS = "SADREC_SERVE_SETTINGS"
"""The variable that holds the settings of a worker."""
UNUSABLE = 3
"""The exit code of a worker that could not load its model."""
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Questions are small: the threads of a linear algebra library would only wait for each other.

Only variables reach every copy of such a library: NumPy and SciPy bring one each, which are loaded at the first use.
"""
_PATIENCE = 600.0
"""Seconds that a new worker may take to become ready before the old one is kept."""
SLOWEST = 15
"""Seconds beyond the draining that the requests before it may take."""
_HURRY = 5.0
"""Seconds beyond these after which a worker that is to end is killed."""
_APART = 5.0
"""Seconds between the start of a worker and that of the one after it, if it dies at once."""


class _Unwaiting(logging.Handler):
    """Standard error without blocking: what its reader does not take is dropped."""

    def emit(self, record: logging.LogRecord) -> None:
        left = f"{self.format(record)}\n".encode(errors="replace")
        with suppress(OSError):  # its reader is gone
            while left and select.select([], [2], [], 0)[1]:
                left = left[os.write(2, left[: select.PIPE_BUF]) :]  # a pipe that takes anything takes PIPE_BUF bytes


def log_without_waiting() -> None:
    """Make logging non-blocking."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[_Unwaiting()]
    )


@dataclass(eq=False)
class WorkerProcess:
    """A worker process."""

    slot: int
    kept: bool  # whether another takes its place when it ends
    process: Process | None = None  # None while it is started
    ready: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def send(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """Starts workers on one socket and looks after them."""

    def __init__(
        self,
        settings: ServeSettings,
        host: str = "127.0.0.1",
        port: int = 8000,
        workers: int = 1,
        on_ready: Callable[[int], object] = lambda port: None,
    ) -> None:
        self.settings, self.count, self.on_ready = settings, workers, on_ready
        self.socket = _bind(host, port)
        self.port: int = self.socket.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="sadrec-serve-")
        self.workers: list[WorkerProcess] = []
        self._open, self._stopping, self._code = False, asyncio.Event(), 0
        self._renewal: asyncio.Task[None] | None = None

    def run(self) -> int:
        """Run until a signal ends the service; return the exit code."""
        try:
            asyncio.run(self._run())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.socket.close()
            shutil.rmtree(self.folder, ignore_errors=True)
        return self._code

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for number, react in ((signal.SIGTERM, self._stop), (signal.SIGINT, self._stop), (signal.SIGHUP, self._renew)):
            loop.add_signal_handler(number, react)
        try:
            async with asyncio.TaskGroup() as self._tasks:  # until all workers have ended
                self._start()
        finally:
            for worker in self.workers:
                worker.send(signal.SIGKILL)

    def _stop(self) -> None:
        """Stop all workers; connections are accepted until the last of them stops."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.socket.close()
            if self._renewal is not None:
                self._renewal.cancel()
            for worker in self.workers:
                self._end(worker, signal.SIGUSR2)

    def _renew(self) -> None:
        """Replace all workers, unless that is under way."""
        if not self._stopping.is_set() and (self._renewal is None or self._renewal.done()):
            self._renewal = self._tasks.create_task(self._replace_all())

    async def _replace_all(self) -> None:
        """Worker by worker, start another, and end the one before when it is ready."""
        logger.info("replacing %d worker(s)", self.count)
        for old in [worker for worker in self.workers if worker.kept]:
            new = self._start(kept=False)
            await asyncio.wait([new.ready], timeout=_PATIENCE)
            if not (new.ready.done() and new.ready.result()):
                logger.error("the new worker did not become ready: the old one goes on")
                new.send(signal.SIGKILL)
                return
            new.kept = True
            self._end(old if old in self.workers else new, signal.SIGUSR1)  # one that died was replaced then

    def _start(self, kept: bool = True) -> WorkerProcess:
        worker = WorkerProcess(min(set(range(len(self.workers) + 1)) - {worker.slot for worker in self.workers}), kept)
        self.workers.append(worker)
        self._tasks.create_task(self._look_after(worker))
        return worker

    async def _look_after(self, worker: WorkerProcess) -> None:
        """Run a worker until it ends, and have another take its place if it was not to end."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        variables = {FOLDER: self.folder, SLOT: str(worker.slot), SETTINGS: self.settings.to_json()}
        # Once the service was ready, clients wait for a worker that loads rather than are refused by it.
        listening, replacing = self.socket.fileno(), str(int(self._open))
        ours, theirs = socket.socketpair()  # its standard input: it writes there that it is ready, and ends with us
        with ours:
            with theirs:
                worker.process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "sadrec.serving.server", str(listening), replacing),
                    stdin=theirs.fileno(),
                    pass_fds=(listening,),
                    env={**os.environ, **_ONE_THREAD, **variables},
                    start_new_session=True,  # Ctrl-C is for this process, which ends its workers
                )
            if self._stopping.is_set():  # meanwhile
                self._end(worker, signal.SIGUSR2)
            ours.setblocking(False)
            worker.ready.set_result(await loop.sock_recv(ours, 16) != b"")
            if worker.ready.result() and not self._open:
                self._open = True
                self.on_ready(self.port)
                for _ in range(self.count - 1):  # they accept nothing until they are ready, and this one answers
                    self._start()
            code = await worker.process.wait()
        self.workers.remove(worker)
        Path(self.folder, f"model_{worker.slot}").unlink(missing_ok=True)
        if not worker.kept:
            return
        if code == UNUSABLE and not worker.ready.result():
            self._code = 1
            self._stop()
            return
        logger.error("a worker ended with code %s: another takes its place", code)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), max(0.0, began + _APART - loop.time()))
        if not self._stopping.is_set():
            self._start()

    def _end(self, worker: WorkerProcess, number: int) -> None:
        """Stop a worker, and kill it if it does not end."""

        def kill() -> None:
            if worker in self.workers:
                logger.error("a worker did not end in time: it is killed")
                worker.send(signal.SIGKILL)

        worker.kept = False
        worker.send(number)
        asyncio.get_running_loop().call_later(self.settings.drain_seconds + SLOWEST + _HURRY, kill)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # the system holds little of what a client does not read
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 1 << 17)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        raise OSError(f"cannot listen at {host}:{port} ({error.strerror or error}): choose another --port") from None
    os.set_inheritable(listening.fileno(), True)
    return listening
