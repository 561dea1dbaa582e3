"""What befalls a running service: a model's path that blocks, clients that read nothing, a full disk under the log.

Whatever stands where the model was, the old one goes on answering, ``/readyz`` says what is wrong, and a good file is
taken afterwards. Clients that read nothing are cut off, and others are answered. Of the answers that people sent, those
that were acknowledged are in the log, the others were refused in words, and no line is cut. With a full disk, and
nobody who reads its messages, a service ends within its limit.
"""

import asyncio
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from campaigns._subjects import fitted
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec import SAD
from sadrec.serving import ServeSettings, create_app
from sadrec.serving.loaded import Loaded
from sadrec.serving.middleware import Service
from sadrec.serving.reload import load_warm
from sadrec.serving.server import end_stalled, protocol_of

STALL = 1.0
"""Seconds after which a client that reads nothing is cut off."""
PATIENCE = 10.0
"""Seconds within which everything must be answered, on a machine that does other work, too."""
LIMIT = 25.0
"""Seconds within which a service must end."""


class BrokenPromiseError(Exception):
    """What was promised does not hold."""


class Subject(NamedTuple):
    """Two models of the same users and items in files, and the first of them served."""

    files: tuple[Path, Path]
    served: Loaded


def prepare(folder: Path) -> Subject:
    """Save two models."""
    with quiet_warnings():
        model = fitted("sad")
        model.save(folder / "first")
        other = model.user_factors[::-1], model.item_factors, model.rival_factors
        SAD.from_factors(*other, users=model.users, items=model.items).save(folder / "second")
        return Subject((folder / "first", folder / "second"), load_warm(ServeSettings(str(folder / "first"))))


@contextmanager
def serving(subject: Subject, **settings: Any) -> Iterator[tuple[Service, int]]:
    """Run a service in a thread; yield it and its port."""
    chosen = ServeSettings(stall_seconds=STALL, reload_seconds=0.05, **settings)
    service = create_app(chosen, subject.served)
    server = uvicorn.Server(uvicorn.Config(service, http=protocol_of(chosen), log_config=None))
    service.connections = server.server_state.connections
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
    listening.bind(("127.0.0.1", 0))

    async def serve() -> None:
        watching = asyncio.create_task(end_stalled(service))
        await server.serve([listening])
        watching.cancel()

    thread = threading.Thread(
        target=asyncio.Runner(loop_factory=server.config.get_loop_factory()).run, args=(serve(),), daemon=True
    )
    thread.start()
    try:
        until(lambda: server.started, "the service starts")
        yield service, listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        check(not thread.is_alive(), "the service ends")


def until(holds: Any, what: str, seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise BrokenPromiseError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)


def ask(port: int, path: str, question: Any = None) -> tuple[int, Any]:
    """Ask and return status and answer."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        body = None if question is None else json.dumps(question)
        client.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content[:1] == b"{" else content.decode()
    except (OSError, http.client.HTTPException) as error:
        raise BrokenPromiseError(f"no answer to {path}: {error!r}") from None
    finally:
        client.close()


def check(holds: bool, what: str) -> None:
    """Say what does not hold."""
    if not holds:
        raise BrokenPromiseError(what)


# -- the path of the model ---------------------------------------------------------------------------------------------


def _blocked(subject: Subject, rng: Random, folder: Path) -> None:
    model, question = folder / "model", f"/v1/recommend?user={subject.served.model.users[0]}"
    shutil.copy(subject.files[0], model)
    with serving(subject, model=str(model)) as (_, port):
        before = ask(port, question)
        check(before[0] == 200, f"a known user is answered {before}")
        for _ in range(int(rng.integers(1, 4))):
            _remove(model)
            (os.mkfifo, _loop, os.mkdir, _device, _socket)[int(rng.integers(5))](model)
            until(lambda: str(model) in str(ask(port, "/readyz")[1]["problem"]), "/readyz says what is wrong")
            for path in (question, "/livez", "/readyz", "/v1/describe"):
                check(ask(port, path)[0] == 200, f"{path} is answered")
            check(ask(port, question) == before, "the old model answers")
            check("sadrec_files_unusable 1.0" in ask(port, "/metrics")[1], "a figure says that something is wrong")
        _remove(model)
        shutil.copy(subject.files[1], folder / "part")
        (folder / "part").rename(model)
        until(lambda: ask(port, question)[1]["model"] != before[1]["model"], "a good file is taken")
        check(ask(port, "/readyz")[1]["problem"] is None, "nothing is wrong any more")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as bound:  # its address must be short
        os.chdir(path.parent)
        bound.bind(path.name)
        os.chdir(here)


# -- clients that read nothing -----------------------------------------------------------------------------------------


def _unread(subject: Subject, rng: Random, folder: Path) -> None:
    items = [subject.served.plain(item) for item in subject.served.model.items]
    body = json.dumps({"items": items, "rivals": items}).encode()
    head = f"POST /v1/margins HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    clients: list[socket.socket] = []
    with serving(subject, model=str(subject.files[0])) as (service, port), ExitStack() as stack:
        for _ in range(int(rng.integers(260, 400))):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", port))
            client.setblocking(False)
            client.send((head.encode() + b"\r\n\r\n" + body) * int(rng.integers(30, 60)))
            clients.append(client)
        ended = time.monotonic() + 2 * STALL
        while time.monotonic() < ended:
            for path in ("/v1/describe", "/readyz"):
                status, answer = ask(port, path)
                check(status == 200, f"others are answered: {status} {answer}")
        until(lambda: not service.connections, f"{len(clients)} clients that read nothing are cut off")
        until(lambda: service._at_once == 0, "nothing is counted any more")


# -- a full disk -------------------------------------------------------------------------------------------------------


def _sent(port: int, user: str, events: int, items: list[Any]) -> int:
    status, answer = ask(
        port, "/v1/events", {"events": [{"user": user, "winner": items[0], "loser": items[1]}] * events}
    )
    check(status in (200, 507), f"answers are kept, or refused with 507: {status} {answer}")
    check(status == 200 or "the answers were not kept (" in answer["error"], f"a refusal is said in words: {answer}")
    return status


def _full(subject: Subject, rng: Random, folder: Path) -> None:
    log, items = folder / "answers.jsonl", [subject.served.plain(item) for item in subject.served.model.items[:2]]
    sizes = [int(size) for size in rng.integers(1, 30, 40)]
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept: Counter[str] = Counter()
    megabytes = int(rng.integers(2))
    with ExitStack() as stack:
        ports = [
            stack.enter_context(serving(subject, model=str(subject.files[0]), log=str(log), log_megabytes=megabytes))[1]
            for _ in range(int(rng.integers(1, 3)))
        ]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(2_000, 60_000)), hard))
        try:
            with ThreadPoolExecutor(4) as threads:
                users = [f"user {number}" for number in range(len(sizes))]
                requests = [
                    threads.submit(_sent, ports[number % len(ports)], user, size, items)
                    for number, (user, size) in enumerate(zip(users, sizes, strict=True))
                ]
                for user, size, answer in zip(users, sizes, requests, strict=True):
                    kept.update({user: size} if answer.result() == 200 else {})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        check(_sent(ports[0], "last", 1, items) == 200, "answers are kept when there is space again")
        kept["last"] += 1
    logged = Counter(json.loads(line)["user"] for line in log.read_text().splitlines())
    check(logged == kept, f"the log holds what was acknowledged: {kept - logged} lost, {logged - kept} too many")


def _ended(subject: Subject, rng: Random, folder: Path) -> None:
    """A process of its own, whose messages nobody reads."""
    log, items = folder / "answers.jsonl", [subject.served.plain(item) for item in subject.served.model.items[:2]]
    command = [sys.executable, "-m", "sadrec", "serve", str(subject.files[0]), "--port", "0", "--log", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        check(address is not None, "the service starts")
        assert address is not None
        port = int(address[1])
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for worker in workers:
            resource.prlimit(int(worker), resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        answers = Counter(_sent(port, "ann", 10, items) for _ in range(int(rng.integers(20, 120))))
        check(answers[507] > 0, f"the disk is full: {answers}")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        check(process.wait(2 * LIMIT) == 0, f"the service ends with {process.returncode}")
        check(time.monotonic() - began < LIMIT, f"the service ends after {time.monotonic() - began:.1f} s")
        messages = process.stderr.read()
        check("Traceback" not in messages and "killed" not in messages, f"it says {messages[-2000:]}")
        lines = log.read_text().splitlines()
        check(len(lines) == 10 * answers[200] and all(json.loads(line) for line in lines), f"{len(lines)} lines")
    finally:
        process.kill()
        process.wait()


KINDS = {_blocked: 0.35, _unread: 0.2, _full: 0.35, _ended: 0.1}
WORDS = {_blocked: "old model answered", _unread: "others answered", _full: "log whole", _ended: "ended in time"}


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Let something befall a service."""
    kind = list(KINDS)[int(rng.choice(len(KINDS), p=list(KINDS.values())))]
    try:
        with quiet_warnings():
            kind(subject, rng, folder)
    except BrokenPromiseError as broken:
        return Outcome("broken promises", f"{kind.__name__}: {broken}")
    except Exception as error:
        return Outcome("other errors", f"{kind.__name__}: {type(error).__name__}: {error}")
    return Outcome(WORDS[kind])


CAMPAIGN = Campaign(
    unit="hardships of a service",
    kept=tuple(WORDS.values()),
    broken=("broken promises", "other errors"),
    prepare=prepare,
    trial=trial,
    seconds=150,
    memory=8.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=100)
