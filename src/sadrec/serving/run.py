"""The process that starts workers, replaces them and ends them. It answers nothing itself, and loads no model.

- SIGTERM, SIGINT: workers finish what they were asked, ask their clients to leave, and end.
- SIGHUP: worker by worker, a new one is started, and when it is ready, the old one ends.
- A worker that died is replaced.
"""

import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
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
"""How a worker ends that could not load the model it was started with."""
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Questions are small: the threads of a linear algebra library would only wait for each other.

Only variables reach every copy of such a library: NumPy and SciPy bring one each, which are loaded at the first use.
"""
_PATIENCE = 600.0
"""Seconds that a new worker may take to become ready before the old one is kept."""
SLOWEST = 15
"""Seconds beyond the draining that what was asked before it may take."""
_HURRY = 5.0
"""Seconds beyond these after which a worker that was told to end is killed."""


class _Unwaiting(logging.Handler):
    """Writes to the standard error, and leaves out what would have to wait for whoever reads it."""

    def emit(self, record: logging.LogRecord) -> None:
        left = f"{self.format(record)}\n".encode(errors="replace")
        with suppress(OSError):  # nobody reads it any more
            while left and select.select([], [2], [], 0)[1]:
                left = left[os.write(2, left[: select.PIPE_BUF]) :]  # a pipe that takes anything takes this much


def log_without_waiting() -> None:
    """Let the log never hold up the process that writes it."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=[_Unwaiting()]
    )


@dataclass(eq=False)
class Worker:
    """A process that answers."""

    process: subprocess.Popen[bytes]
    slot: int
    pipe: int | None
    began: float = field(default_factory=time.monotonic)
    ready: bool = False
    retired: float | None = None  # when it was told to end


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
        self.workers: list[Worker] = []
        self.folder = tempfile.mkdtemp(prefix="sadrec-serve-")
        self._signals: list[int] = []
        self._stopping = False
        self._code = 0
        self._quick_deaths = 0
        self._told = False

    def run(self) -> int:
        """Run until told to end; return the exit code."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        os.set_blocking(write_end, False)
        before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        handlers = {number: signal.signal(number, lambda got, _: self._signals.append(got)) for number in numbers}
        try:
            self._start(replacing=False)
            while self.workers:
                self._wait(read_end, 0.5)
                self._act()
            return self._code
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.wait()
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(read_end)
            os.close(write_end)
            self.socket.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self, woken: int, seconds: float) -> None:
        """Sleep until a signal comes, a worker says that it is ready, or some time has passed."""
        pipes = {worker.pipe: worker for worker in self.workers if worker.pipe is not None}
        readable, _, _ = select.select([woken, *pipes], [], [], seconds)
        for handle in readable:
            if handle == woken:
                with suppress(BlockingIOError):
                    os.read(woken, 4096)
                continue
            worker = pipes[handle]
            worker.ready = os.read(handle, 16) != b""
            os.close(handle)
            worker.pipe = None
            if worker.ready and not self._told:
                self._told = True
                self.on_ready(self.port)
                # The others accept nothing until they are ready: from here on, whoever asks is answered.
                for _ in range(self.count - 1):
                    self._start(replacing=True)

    def _act(self) -> None:
        """Do what signals and ended workers call for."""
        asked, self._signals = self._signals, []
        if not self._stopping and {signal.SIGTERM, signal.SIGINT} & set(asked):
            self._stop()
        if not self._stopping and signal.SIGHUP in asked:
            self._roll()
        most = self.settings.drain_seconds + SLOWEST + _HURRY
        for worker in list(self.workers):
            if worker.process.poll() is not None:
                self._bury(worker)
            elif worker.retired is not None and time.monotonic() - worker.retired > most:
                logger.error("a worker did not end within %g s of being told to: it is killed", most)
                worker.process.kill()

    # -- workers ------------------------------------------------------------------------------------------------------

    def _start(self, replacing: bool) -> Worker:
        slot = min(set(range(len(self.workers) + 1)) - {worker.slot for worker in self.workers})
        ours, theirs = os.pipe()
        handle = self.socket.fileno()
        environment = {
            **os.environ,
            **_ONE_THREAD,
            FOLDER: self.folder,
            SLOT: str(slot),
            SETTINGS: self.settings.to_json(),
            "SADREC_SERVE_PIPE": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "sadrec.serving.worker", str(handle), str(int(replacing)), str(theirs)],
            stdin=subprocess.PIPE,
            pass_fds=(handle, theirs),
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process, which tells its workers
        )
        os.close(theirs)
        worker = Worker(process, slot, ours)
        self.workers.append(worker)
        return worker

    def _stop(self) -> None:
        """Tell all workers to end; nothing new is accepted from when the last of them stops accepting."""
        self._stopping = True
        self.socket.close()
        for worker in self.workers:
            self._end(worker, signal.SIGTERM)

    def _end(self, worker: Worker, how: int) -> None:
        worker.retired = time.monotonic()
        with suppress(ProcessLookupError):
            worker.process.send_signal(how)

    def _roll(self) -> None:
        """Replace the workers one by one, without a moment in which nobody answers."""
        logger.info("replacing %d worker(s)", self.count)
        for old in [worker for worker in self.workers if worker.retired is None]:
            new = self._start(replacing=True)
            if self._became_ready(new):
                self._end(old, signal.SIGUSR1)
            else:
                if not self._told_to_stop():
                    logger.error("the new worker did not become ready: the old one goes on")
                new.retired = time.monotonic()
                new.process.kill()
                return

    def _became_ready(self, worker: Worker) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while worker.pipe is not None and time.monotonic() < deadline:
            select.select([worker.pipe], [], [], 0.5)
            readable, _, _ = select.select([worker.pipe], [], [], 0)
            if readable:
                worker.ready = os.read(worker.pipe, 16) != b""
                os.close(worker.pipe)
                worker.pipe = None
            if self._told_to_stop():
                return False
        return worker.ready

    def _told_to_stop(self) -> bool:
        return bool({signal.SIGTERM, signal.SIGINT} & set(self._signals))

    def _bury(self, worker: Worker) -> None:
        """Forget a worker that has ended, and start another if nobody told it to."""
        self.workers.remove(worker)
        code = worker.process.returncode
        if worker.pipe is not None:
            os.close(worker.pipe)
        if worker.process.stdin is not None:
            worker.process.stdin.close()
        Path(self.folder, f"model_{worker.slot}").unlink(missing_ok=True)
        if self._stopping or worker.retired is not None:
            return
        if code == UNUSABLE and not worker.ready:
            self._code = 1
            self._stop()
            return
        logger.error("a worker ended with code %s: another takes its place", code)
        self._quick_deaths = self._quick_deaths + 1 if time.monotonic() - worker.began < 10 else 0
        until = time.monotonic() + (min(30.0, 0.5 * 2**self._quick_deaths) if self._quick_deaths > 1 else 0)
        while time.monotonic() < until and not self._told_to_stop():
            time.sleep(0.1)
        self._start(replacing=self._told)  # once the service was ready, whoever asks rather waits than is refused


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
