"""A published file is fetched once, checked, and never appears half-written."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sadrec.data import load
from sadrec.data.datasets import DATASETS, DownloadError, cache_folder
from sadrec.data.datasets.download import fetch

CONTENT = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT; counts requests; can break off."""

    requests: int = 0
    breaks_after: int | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.path.endswith("missing.zip"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: self.server.breaks_after])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


def url(server: Server, name: str = "file.zip") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    assert fetch(url(server), MD5, folder=folder, progress=False).read_bytes() == CONTENT
    fetch(url(server), MD5, folder=folder, progress=False)
    assert server.requests == 1
    assert [file.name for file in folder.iterdir()] == ["file.zip"]


def test_a_broken_download_leaves_no_file(server: Server, tmp_path: Path) -> None:
    server.breaks_after = 5000
    with pytest.raises(DownloadError, match=r"cannot fetch .*the connection ended after 5,000 of 256,000 bytes"):
        fetch(url(server), MD5, folder=tmp_path, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_checksum_is_refused_and_nothing_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=f"its md5 is {MD5}, not 0000"):
        fetch(url(server), "0000", folder=tmp_path, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_damaged_in_the_cache_is_refused(server: Server, tmp_path: Path) -> None:
    path = fetch(url(server), MD5, folder=tmp_path, progress=False)
    path.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(DownloadError, match=r"file\.zip is not the published file: .* delete it to fetch it again"):
        fetch(url(server), MD5, folder=tmp_path, progress=False)


def test_a_file_that_is_not_there_is_named_with_where_to_put_it(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"missing\.zip .*put it at .*missing\.zip"):
        fetch(url(server, "missing.zip"), MD5, folder=tmp_path, progress=False)


def test_without_a_network_load_says_what_to_fetch_and_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SADREC_CACHE", str(tmp_path / "cache"))
    elsewhere = DATASETS["movielens-1m"]._replace(url="http://127.0.0.1:1/ml-1m.zip", md5="0")
    monkeypatch.setitem(DATASETS, "movielens-1m", elsewhere)
    with pytest.raises(DownloadError, match=r"cannot fetch http.*ml-1m\.zip.*put it at .*cache.ml-1m\.zip"):
        load("movielens-1m")


def test_the_cache_is_the_user_s_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SADREC_CACHE", raising=False)
    assert cache_folder().is_relative_to(Path.home()) or "XDG_CACHE_HOME" in __import__("os").environ
    assert "sadrec" in cache_folder().parts
