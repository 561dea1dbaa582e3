"""Clients that send a byte now and then hold no connection for ever."""

import socket
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers share a socket as POSIX has it")

PATIENCE = 0.3


@pytest.fixture(scope="module")
def port(settings):
    import uvicorn

    from sadrec.serving import create_app
    from sadrec.serving.store import loaded
    from sadrec.serving.worker import protocol_of

    service = create_app(settings(reload_seconds=0), loaded(settings()))
    config = uvicorn.Config(service, host="127.0.0.1", port=0, http=protocol_of(PATIENCE), log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(20)


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def read(client):
    """Read until the other side closes."""
    found = b""
    while part := client.recv(65536):
        found += part
    return found


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


def test_whoever_asks_in_time_may_wait_before_the_next_request(port):
    with connected(port) as client:
        for _ in range(2):
            client.sendall(HEAD + BODY)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
            time.sleep(2 * PATIENCE)
        client.sendall(HEAD[:20])  # the time of the next one is its own
        time.sleep(PATIENCE / 3)
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
