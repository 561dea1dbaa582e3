"""Clients that send a byte now and then, or read none, hold no connection for ever."""

import asyncio
import socket
import sys
import threading
import time
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers share a socket as POSIX has it")

PATIENCE = 0.3


@pytest.fixture(scope="module")
def start(settings):
    """A function that starts a server; it is ended with the tests of this file."""
    import uvicorn

    from sadrec.serving import create_app
    from sadrec.serving.reload import load_warm
    from sadrec.serving.server import end_stalled, protocol_of

    served, running = load_warm(settings()), []

    def begin(**options):
        chosen = settings(reload_seconds=0, **options)
        service = create_app(chosen, served)
        server = uvicorn.Server(uvicorn.Config(service, http=protocol_of(chosen), log_level="error"))
        service.connections = server.server_state.connections
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)  # little fits in: it is soon full
        listening.bind(("127.0.0.1", 0))

        async def serve():
            watching = asyncio.create_task(end_stalled(service))
            await server.serve([listening])
            watching.cancel()

        runner = asyncio.Runner(loop_factory=server.config.get_loop_factory())
        thread = threading.Thread(target=runner.run, args=(serve(),), daemon=True)
        running.append((server, thread))
        thread.start()
        while not server.started:
            thread.join(0.02)
        return SimpleNamespace(port=listening.getsockname()[1], service=service)

    yield begin
    for server, thread in running:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def port(start):
    return start(request_seconds=PATIENCE).port


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def read(client):
    """Read until the other side closes."""
    received = b""
    while part := client.recv(65536):
        received += part
    return received


HEAD = b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n"
BODY = b'{"user": 7, "items": [1, 2]}'


@pytest.mark.parametrize("sent", [b"", b"GET /livez HT", HEAD[:60], HEAD, HEAD + BODY[:9]])
def test_a_request_that_does_not_arrive_ends_its_connection(port, sent):
    with connected(port) as client:
        client.sendall(sent)
        assert read(client).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_a_byte_now_and_then_does_not_help(port):
    with connected(port) as client:
        ended = False
        for byte in range(100):
            try:
                client.sendall(HEAD[byte : byte + 1])
                time.sleep(PATIENCE / 10)
            except OSError:
                ended = True
                break
        assert ended or read(client).startswith(b"HTTP/1.1 408")


def test_whoever_asks_in_time_may_wait_before_the_next_request(start):
    patience = 2.0  # a busy machine may keep the rest of a request for a second
    with connected(start(request_seconds=patience).port) as client:
        for _ in range(2):
            client.sendall(HEAD + BODY)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
            time.sleep(1.2 * patience)
        client.sendall(HEAD[:20])  # the time of the next one is its own
        time.sleep(patience / 10)
        client.sendall(HEAD[20:] + BODY)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_head_without_end_is_refused(port):
    with connected(port) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\n" + b"X-More: " + b"x" * 70_000)
        assert read(client).startswith(b"HTTP/1.1 431")


def test_a_long_head_that_comes_at_once_is_refused(port):
    for line in (b"GET /livez HTTP/1.1\r\nX-More: " + b"x" * 70_000, b"GET /livez?" + b"x" * 70_000 + b" HTTP/1.1"):
        with connected(port) as client:
            client.sendall(line + b"\r\nHost: x\r\n\r\n")
            assert read(client).startswith(b"HTTP/1.1 431")


# -- clients that do not read -----------------------------------------------------------------------------------------
MANY = b'{"user": 7, "items": %b, "rivals": %b}' % ((str(list(range(30))).encode(),) * 2)
LARGE = HEAD.replace(b"rank", b"margins").replace(b"28", b"%d" % len(MANY))


def asking(port, times, room):
    """Return a connection on which large answers are asked for, and nothing is read yet."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    client.sendall((LARGE + MANY) * times)
    return client


def until(holds, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_clients_that_read_nothing_are_cut_off_and_hold_up_nobody(start, monkeypatch, caplog):
    """260 of them, and all others were told for minutes that too much is asked at once."""
    from sadrec.serving import middleware

    running = start(stall_seconds=1.0)
    slow = [asking(running.port, 20, 4096) for _ in range(12)]
    until(lambda: running.service.stalled == len(slow) and not running.service._at_once)  # all wait for a reader
    monkeypatch.setattr(middleware, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(middleware, "MOST_CONNECTIONS", 6)
    for _ in range(5):
        with connected(running.port) as client:
            client.sendall(HEAD + BODY)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
    until(lambda: not running.service.connections, seconds=15)  # long before the default of stall_seconds
    for client in slow:
        client.close()
    assert not caplog.records  # what is left of their requests is given up without a fault


def test_pipelined_requests_wait_until_the_answers_before_them_are_taken(start):
    """Else a few hundred clients that read nothing kept a worker busy for ten seconds."""
    running = start(stall_seconds=30.0)
    margins = running.service.metrics.requests.labels("margins", "200")._value
    before = margins.get()
    with asking(running.port, 20, 4096) as client:
        until(lambda: margins.get() > before)
        time.sleep(0.5)
        assert margins.get() - before <= 2
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 20 or not received.endswith(b"}"):
            received += client.recv(65536)
    assert margins.get() - before == 20


def test_requests_behind_answers_that_are_not_taken_are_not_parsed(start):
    """On a busy machine, parsing them kept others waiting for more than ten seconds."""
    running = start(stall_seconds=30.0)
    with asking(running.port, 100, 4096) as client:
        until(lambda: running.service.stalled == 1)
        (connection,) = running.service.connections
        assert len(connection.pipeline) < 20
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 100 or not received.endswith(b"}"):
            received += client.recv(65536)


def test_a_client_that_reads_slowly_gets_its_answers(start):
    stall = 4.0  # a busy machine may keep a client that reads waiting for a second or two
    running = start(stall_seconds=stall)
    with asking(running.port, 30, 1 << 15) as client:
        began, received = time.monotonic(), b""
        while received.count(b"HTTP/1.1 200 OK") < 30 or not received.endswith(b"}"):
            part = client.recv(8192)
            assert part, "the connection was closed"
            received += part
            time.sleep(0.1)
        assert time.monotonic() - began > stall


def test_an_address_may_be_given_some_connections_only(start):
    running = start(connections_per_address=2)
    with connected(running.port) as first, connected(running.port) as second:
        for client in (first, second):
            client.sendall(HEAD + BODY)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
        with connected(running.port) as third:
            assert read(third).startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    until(lambda: not running.service.connections)
    with connected(running.port) as again:
        again.sendall(HEAD + BODY)
        assert again.recv(65536).startswith(b"HTTP/1.1 200 OK")
