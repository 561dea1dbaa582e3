"""What Dockerfile, compose.yaml and sadrec.service say is what the package offers."""

import http.server
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import click
import pytest

from sadrec.cli import main
from sadrec.serving import ServeSettings, supervisor

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
LONGEST = ServeSettings("model.sad").drain_seconds + supervisor.SLOWEST + supervisor._HURRY
"""Seconds from SIGTERM to the end of the slowest worker."""


@pytest.fixture(scope="module")
def lines():
    """The lines of the Dockerfile: instruction and rest."""
    text = (ROOT / "Dockerfile").read_text()
    joined = re.sub(r"\\\n", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def service():
    """The service of compose.yaml."""
    return yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["sadrec"]


def last(lines, instruction):
    return [rest for name, rest in lines if name == instruction][-1]


@pytest.fixture
def understood(monkeypatch):
    """A function that returns what ``sadrec serve`` makes of a command line; paths are those of another machine."""
    command = main.get_command(click.Context(main), "serve")
    for option in command.params:
        if isinstance(option.type, click.Path):
            monkeypatch.setattr(option, "type", click.STRING)
            monkeypatch.setattr(option, "callback", None)

    def parse(words):
        assert words[0].rsplit("/", 1)[-1] == "sadrec" and words[1] == "serve"
        return command.make_context("serve", list(words[2:])).params

    return parse


def parsed(words):
    return yaml.safe_load(words)


def test_the_image_installs_what_there_is(lines):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r'"\.\[(\w+)\]"', " ".join(rest for name, rest in lines if name == "RUN"))
    assert installed in extras
    copied = [name for _, rest in lines if _ == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied and all((ROOT / name).exists() and name.removeprefix("./") in sent for name in copied)


def test_image_and_compose_file_start_the_service(lines, service, understood):
    entry = parsed(last(lines, "ENTRYPOINT"))
    alone, composed = (understood([*entry, *words]) for words in (parsed(last(lines, "CMD")), service["command"]))
    for options in (alone, composed):
        assert options["model"] == "/served/model.sad" and options["host"] == "0.0.0.0"
        assert str(options["port"]) == last(lines, "EXPOSE")
    assert service["ports"] == [f"127.0.0.1:{alone['port']}:{alone['port']}"]
    assert composed["keys"] and composed["workers"] == 2
    # Every path is on a volume, and what is written is on one that is not read-only.
    mounts = {volume.split(":")[1]: volume.endswith(":ro") for volume in service["volumes"]}
    assert mounts == {"/served": True, "/answers": False, "/var/cache/sadrec": False}
    assert {str(Path(composed[name]).parent) for name in ("model", "keys")} == {"/served"}
    assert str(Path(composed["log"]).parent) == "/answers"
    assert service["read_only"] and service["tmpfs"] == ["/tmp"]  # where figures of workers are put together
    named = yaml.safe_load((ROOT / "compose.yaml").read_text())["volumes"]
    assert {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")} == set(named)


def test_the_image_runs_as_a_user_without_rights_who_owns_what_is_written(lines):
    made = " ".join(rest for name, rest in lines if name == "RUN")
    (group,), (user,) = re.findall(r"groupadd --gid (\d+)", made), re.findall(r"useradd --uid (\d+)", made)
    assert last(lines, "USER") == f"{user}:{group}" and int(user) > 0
    (owned,) = re.findall(r"install -d -o sadrec -g sadrec (.*)", made)
    assert set(owned.split()) == {"/answers", "/var/cache/sadrec"}
    assert "NUMBA_CACHE_DIR=/var/cache/sadrec" in last(lines, "ENV").split()


def test_who_stops_it_waits_until_the_slowest_worker_has_ended(lines, service, understood):
    assert last(lines, "STOPSIGNAL") == "SIGTERM"
    assert int(service["stop_grace_period"].removesuffix("s")) >= LONGEST
    page, unit = ((ROOT / name).read_text() for name in ("docs/serving.md", "sadrec.service"))
    assert int(re.search(r"--stop-timeout (\d+)", page)[1]) >= LONGEST
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) >= LONGEST
    options = understood(shlex.split(re.search(r"ExecStart=(.*)", unit)[1]))
    assert options["model"] == "/srv/sadrec/model.sad" and options["workers"] == 2


@pytest.mark.parametrize("status", [200, 503])
def test_the_health_check_tells_whether_the_service_is_ready(lines, status):
    paths = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    rest = last(lines, "HEALTHCHECK")
    program, *arguments = parsed(rest[rest.index("[") :])
    assert program == "python" and f":{last(lines, 'EXPOSE')}/" in arguments[-1]
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = [one.replace(f":{last(lines, 'EXPOSE')}/", f":{server.server_port}/") for one in arguments]
        code = subprocess.run([sys.executable, *here], capture_output=True, timeout=60).returncode
        server.shutdown()
    assert paths == ["/readyz"] and (code == 0) == (status == 200)
