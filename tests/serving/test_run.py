"""Real processes: workers that are replaced, die and end, and what their clients see of it."""

import asyncio
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from sadrec import SAD

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers share a socket as POSIX has it")

PATIENCE = 240


class Running:
    """``sadrec serve`` in a process of its own."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "sadrec", "serve", *options, "--port", "0", "--reload-seconds", "0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""
        self.port = None

    def __enter__(self):
        for line in self.process.stdout:
            self.said += line
            if address := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                self.port = int(address[1])
                break
        assert self.port, self.said
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        return self

    def _listen(self):
        for line in self.process.stdout:
            self.said += line

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE)
        self.listener.join(PATIENCE)
        self.process.stdout.close()

    def ask(self, path):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        finally:
            client.close()

    def workers(self):
        out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return {int(line) for line in out.stdout.split()}

    def models(self):
        """How many workers answer with which model."""
        counts = re.findall(r'sadrec_model_info\{hash="(\w+)"\} ([\d.]+)', self.ask("/metrics")[1])
        return {digest: float(number) for digest, number in counts}

    def wait_until(self, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)


class Load:
    """A client that asks without end, on connections that it keeps, and counts what fails."""

    def __init__(self, port, number=4):
        self.port, self.enough = port, False
        self.asked, self.failures = 0, []
        self.threads = [threading.Thread(target=self._run) for _ in range(number)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.enough = True
        for thread in self.threads:
            thread.join(PATIENCE)

    def _run(self):
        while not self.enough:
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            try:
                client.connect()
            except OSError:  # nobody listens: nothing was asked
                time.sleep(0.02)
                continue
            try:
                while not self.enough:
                    client.request("GET", "/v1/recommend?user=7&N=3")
                    answer = client.getresponse()
                    content = json.loads(answer.read())
                    if answer.status != 200 or content["model"] != answer.headers["x-model"]:
                        self.failures.append((answer.status, content))
                    self.asked += 1
                    if answer.headers.get("connection") == "close":
                        break
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.failures.append(error)
            finally:
                client.close()


@pytest.mark.slow
def test_workers_are_replaced_and_end_without_a_lost_request(folder, tmp_path):
    with Running(str(folder / "model.sad"), "--workers", "2") as running:
        running.wait_until(lambda: sum(running.models().values()) == 2)
        before = running.workers()
        with Load(running.port) as load:
            running.process.send_signal(signal.SIGHUP)
            running.wait_until(lambda: len(running.workers()) == 2 and not before & running.workers())
            count = load.asked
            running.wait_until(lambda: load.asked > count + 20)
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(PATIENCE) == 0
        assert load.failures == [] and load.asked > 20
        assert not running.workers()


def test_clients_that_ask_nothing_delay_no_end_and_those_in_flight_get_their_answer(folder):
    """A connection kept open delayed the end by 6 s, and one whose request never arrived whole by 20."""
    question = b'{"user": 7, "items": [1, 2]}'
    head = b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n"
    with Running(str(folder / "model.sad")) as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)
        connection.request("GET", "/v1/recommend?user=7")
        assert connection.getresponse().read() and connection.sock is not None
        address = "127.0.0.1", running.port
        with (
            connection.sock as idle,
            socket.create_connection(address) as fresh,
            socket.create_connection(address) as slow,
        ):
            slow.sendall(head + question[:9])
            running.wait_until(lambda: running.ask("/readyz")[0] == 200)
            began = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            assert idle.recv(65536) == b"" and fresh.recv(65536) == b""
            waited = time.monotonic() - began
            slow.sendall(question[9:])
            answer = slow.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200") and b"connection: close" in answer
            assert running.process.wait(PATIENCE) == 0
        assert waited < 4  # half a second on a machine that does nothing else


def test_a_request_that_never_arrives_is_ended_with_the_draining(settings):
    from types import SimpleNamespace

    from sadrec.serving import server as servers

    ended = []

    class Slow(servers.protocol_of(settings())):
        def __init__(self):
            self._arriving, self.cycle = True, None

        def _end_slow(self):
            ended.append(self)

    async def drain():
        server = servers.Server(uvicorn.Config("none"), None, settings(drain_seconds=0.1), SimpleNamespace())
        server.servers = []
        server.server_state.connections.add(Slow())
        await server._drain(last=False)
        return server

    assert asyncio.run(drain()).should_exit and len(ended) == 1


def test_a_worker_that_does_not_end_is_killed(settings, monkeypatch):
    from sadrec.serving import supervisor as supervisors

    monkeypatch.setattr(supervisors, "SLOWEST", 0)
    monkeypatch.setattr(supervisors, "_HURRY", 0)
    supervisor = supervisors.Supervisor(settings(drain_seconds=0.0), port=0)

    async def outlived():
        sleeping = sys.executable, "-c", "import time; time.sleep(600)"
        worker = supervisors.WorkerProcess(0, True, await asyncio.create_subprocess_exec(*sleeping))
        supervisor.workers.append(worker)
        await asyncio.sleep(0.1)
        assert worker.process.returncode is None
        supervisor._end(worker, 0)
        return await worker.process.wait()

    try:
        assert asyncio.run(outlived()) == -signal.SIGKILL
    finally:
        supervisor.socket.close()
        shutil.rmtree(supervisor.folder)


@pytest.mark.skipif(sys.platform != "linux", reason="filters of packets are of Linux")
def test_before_the_last_worker_closes_its_socket_nobody_can_connect_any_more():
    """Who connected between the last look at the queue and the close was cut off, now and then under load."""
    from sadrec.serving.server import _drop_new

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address) as before:
            assert _drop_new(listening)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            accepted, _ = listening.accept()
            with accepted:
                before.sendall(b"question")
                accepted.sendall(accepted.recv(100).upper())
                assert before.recv(100) == b"QUESTION"


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_a_worker_that_dies_is_replaced_and_figures_go_on(folder, number):
    """A worker that somebody ended by SIGTERM left the socket, which it shares, closed to new connections for good."""
    with Running(str(folder / "model.sad"), "--workers", "2") as running:
        running.wait_until(lambda: sum(running.models().values()) == 2)
        for _ in range(20):
            assert running.ask("/v1/recommend?user=7")[0] == 200
        victim = sorted(running.workers())[0]
        os.kill(victim, getattr(signal, number))
        running.wait_until(lambda: victim not in running.workers() and sum(running.models().values()) == 2)
        for _ in range(20):
            assert running.ask("/v1/recommend?user=7")[0] == 200
        page = running.ask("/metrics")[1]
        assert 'sadrec_requests_total{status="200",verb="recommend"} 40.0' in page


def exchange(path, content):
    """Write a file at once, as `sadrec fit` does."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.rename(path)


def test_another_model_takes_the_place_in_all_workers(folder, tmp_path):
    path = tmp_path / "served.sad"
    exchange(path, (folder / "model.sad").read_bytes())
    with Running(str(path), "--workers", "2") as running:
        running.wait_until(lambda: sum(running.models().values()) == 2)
        with Load(running.port) as load:
            exchange(path, (folder / "other.sad").read_bytes())
            running.wait_until(lambda: running.models() == {SAD.load(folder / "other.sad").state.file[1]: 2.0})
        assert load.failures == [] and load.asked


def test_a_replacement_that_cannot_load_leaves_the_old_worker_and_the_next_one_takes_its_place(folder, tmp_path):
    path = tmp_path / "served.sad"
    exchange(path, (folder / "model.sad").read_bytes())
    with Running(str(path)) as running:
        before = running.workers()
        path.unlink()
        running.process.send_signal(signal.SIGHUP)
        running.wait_until(lambda: "the old one goes on" in running.said)
        assert running.workers() >= before and running.ask("/v1/recommend?user=7")[0] == 200
        exchange(path, (folder / "model.sad").read_bytes())
        running.process.send_signal(signal.SIGHUP)
        running.wait_until(lambda: len(running.workers()) == 1 and not before & running.workers())
        assert running.ask("/v1/recommend?user=7")[0] == 200


def test_workers_end_when_the_process_that_started_them_is_killed(folder):
    with Running(str(folder / "model.sad")) as running:
        (worker,) = running.workers()
        running.process.kill()
        deadline = time.monotonic() + PATIENCE

        def lives():
            try:
                return Path(f"/proc/{worker}/stat").read_text().split()[2] != "Z"
            except OSError:
                return False

        while lives():
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_no_library_of_a_worker_takes_more_threads_than_one(folder, monkeypatch):
    from sadrec.serving import ServeSettings, supervisor

    class Started(Exception):
        pass

    async def start(*_, env, **__):
        raise Started(env)

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setattr(supervisor.asyncio, "create_subprocess_exec", start)
    with pytest.raises(Started) as caught:
        supervisor.Supervisor(ServeSettings(str(folder / "model.sad")), port=0).run()
    monkeypatch.undo()
    program = (
        "import numpy, scipy.linalg, threadpoolctl\n"
        "print({one['num_threads'] for one in threadpoolctl.threadpool_info()} <= {1})"
    )
    out = subprocess.run([sys.executable, "-c", program], env=caught.value.args[0], capture_output=True, text=True)
    assert out.stdout == "True\n", out.stderr


def test_what_cannot_be_served_is_said_in_one_line(folder, tmp_path):
    def run(*options):
        command = [sys.executable, "-m", "sadrec", "serve", *options, "--port", "0"]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    no_model = run(str(folder / "items.csv"))
    assert no_model.returncode == 1 and "Traceback" not in no_model.stderr and "items.csv" in no_model.stderr
    damaged = bytearray((folder / "model.sad").read_bytes())
    damaged[-50] ^= 255
    (tmp_path / "damaged.sad").write_bytes(damaged)
    refused = run(str(tmp_path / "damaged.sad"))
    assert refused.returncode == 1 and "is damaged" in refused.stderr and "Traceback" not in refused.stderr
