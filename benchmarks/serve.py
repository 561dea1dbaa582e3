"""The service under load: beside a bare FastAPI endpoint, and while it reloads, restarts and loses workers.

    python benchmarks/serve.py                               # all of it, in a few minutes
    python benchmarks/serve.py --only speed                  # needs wrk
    python benchmarks/serve.py --only reload --reloads 50 --seconds 300

``first``: the first request after ``/readyz`` beside those after it. ``speed``: ``GET /v1/recommend`` (users, items and
what was seen of MovieLens 1M where SADREC_DATA has it, else simulated; k = 64, one worker, 8 connections) and a bare
FastAPI endpoint that returns the same bytes take turns.
``reload``: the model's file is replaced again and again under load; every answer must come whole from the model that it
names. ``slow``: a client's requests beside 500 connections that ask for large answers and read nothing, and without
them; none may be refused. ``signals``: SIGHUP and SIGTERM under load. ``kill``: one of two workers is killed.
``memory``: what many requests leave behind. Factors are random: what they say does not change how long an answer takes.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np

CONNECTIONS, FACTORS, N, STARTS, READERS = 8, 64, 10, 5, 500

BARE = """
import sys
from fastapi import FastAPI, Response
import uvicorn
app, body = FastAPI(), open(sys.argv[2], "rb").read()
@app.get("/v1/recommend")
async def recommend(user: int, N: int = 10) -> Response:
    return Response(body, media_type="application/json")
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning", server_header=False)
"""
SCRIPT = """
request = function()
  return wrk.format("GET", "/v1/recommend?user=" .. math.random({least}, {most}) .. "&N={N}")
end
"""


# -- models and servers -----------------------------------------------------------------------------------------------


def save_models(folder: Path) -> tuple[list[int], list[Path]]:
    """Write two models of the same users and items, and return users' ids and the files."""
    from sadrec import SAD, Interactions

    data = os.environ.get("SADREC_DATA")
    ratings = Path(data or ".") / "movielens-1m" / "ratings.parquet"
    if data and ratings.is_file():
        data = Interactions.read(ratings)
    else:
        rng = np.random.default_rng(0)
        user, item = rng.integers(0, 6040, 10**6), (3706 * rng.random(10**6) ** 2).astype(int)
        matrix = np.zeros((6040, 3706), np.float32)
        matrix[user, item] = 1
        data = Interactions.from_csr(matrix)
    paths = []
    for seed in (0, 1):
        path = folder / f"model{seed}.sad"
        rng = np.random.default_rng(seed)
        sides = [rng.normal(0, 0.3, (len(ids), FACTORS)) for ids in (data.users, data.items)]
        rivals, bias = np.abs(rng.normal(1, 0.1, sides[1].shape)), rng.normal(0, 0.5, len(data.items))
        ids = {"users": data.users, "items": data.items, "seen": data.matrix}
        SAD.from_factors(*sides, rivals, bias, **ids).save(path)
        paths.append(path)
    return [int(user) for user in data.users], paths


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, path: str = "/readyz", seconds: float = 120) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
                answer.read()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Serving:
    """``sadrec serve`` for as long as a block lasts."""

    def __init__(self, model: Path, *options: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "sadrec", "serve", str(model), "--port", str(self.port), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def __enter__(self) -> "Serving":
        wait_for(self.port)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def wait_for_workers(self, number: int) -> None:
        """Wait until so many workers answer."""
        while True:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as page:
                counts = re.findall(r"sadrec_model_info\{.*?\} ([\d.]+)", page.read().decode())
            if sum(map(float, counts)) == number:
                return
            time.sleep(0.2)

    def workers(self) -> list[int]:
        """Return the processes that answer."""
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(line) for line in listed.stdout.split()]


# -- speed ------------------------------------------------------------------------------------------------------------


def wrk(port: int, script: Path, seconds: int) -> tuple[float, float]:
    """Return requests a second and the 99th percentile in milliseconds."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(script)]
    out = subprocess.run([*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out or re.search(r"(connect|read|write) [1-9]", out):  # who was stopped for a while sees timeouts
        raise RuntimeError(out)
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", out).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def first(users: list[int], model: Path) -> None:
    """Compare the first request after the service said that it is ready with the median of those after it."""
    rows = []
    for _ in range(STARTS):
        with Serving(model) as ours:
            milliseconds = []
            for user in users[:300]:
                began = time.perf_counter()
                with urllib.request.urlopen(f"http://127.0.0.1:{ours.port}/v1/recommend?user={user}&N={N}") as answer:
                    answer.read()
                milliseconds.append(1e3 * (time.perf_counter() - began))
        rows.append((milliseconds[0], float(np.median(milliseconds[1:]))))
    first, middle = np.median(rows, axis=0)
    ratio = np.median([one / other for one, other in rows])
    print(f"first     {first:.2f} ms, median {middle:.2f} ms: {ratio:.2f} times (bar 2), the middle of {STARTS} starts")


def speed(folder: Path, users: list[int], model: Path, turns: int, seconds: int) -> None:
    """Compare with a bare endpoint that returns the same bytes."""
    if shutil.which("wrk") is None:
        print("speed     left out: wrk is not installed")
        return
    script = folder / "users.lua"
    script.write_text(SCRIPT.format(least=min(users), most=max(users), N=N))
    with Serving(model) as ours:
        with urllib.request.urlopen(f"http://127.0.0.1:{ours.port}/v1/recommend?user={users[0]}&N={N}") as answer:
            body = answer.read()
        (folder / "body.json").write_bytes(body)
        (folder / "bare.py").write_text(BARE)
        port = free_port()
        bare = subprocess.Popen([sys.executable, str(folder / "bare.py"), str(port), str(folder / "body.json")])
        try:
            wait_for(port, f"/v1/recommend?user={users[0]}")
            for where in (ours.port, port):
                wrk(where, script, 1)
            rows = [(wrk(ours.port, script, seconds), wrk(port, script, seconds)) for _ in range(turns)]
        finally:
            bare.terminate()
            bare.wait(30)
    (rate, p99), (bare_rate, bare_p99) = (np.median([row[side] for row in rows], axis=0) for side in (0, 1))
    print(
        f"speed     {rate:,.0f} requests/s, p99 {p99:.2f} ms; bare FastAPI {bare_rate:,.0f}, p99 {bare_p99:.2f} ms; "
        f"ratio {rate / bare_rate:.2f} (bar 0.75), p99 {p99 / bare_p99:.2f} times (bar 1.5); {len(body)} bytes"
    )


def answered_by(port: int) -> int:
    """Return how many lists the service has sent."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        counts = re.findall(r'sadrec_requests_total\{.*?verb="recommend"\} ([\d.]+)', page.read().decode())
    return int(sum(map(float, counts)))


def slow(folder: Path, users: list[int], model: Path, turns: int, seconds: int) -> None:
    """Compare a client's latency beside many that read nothing with its latency alone, in turns."""
    if shutil.which("wrk") is None:
        print("slow      left out: wrk is not installed")
        return
    script = folder / "users.lua"  # by a route, which is refused when too much is asked
    script.write_text(SCRIPT.format(least=min(users), most=max(users), N=f"{N}&keep_seen=true"))
    requests = f"GET /v1/recommend?user={users[0]}&N=1000&keep_seen=true HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 100
    rows = []
    with Serving(model, "--stall-seconds", str(5 * seconds)) as ours:
        wrk(ours.port, script, 1)
        for _ in range(turns):
            time.sleep(1)  # those of the last turn are gone
            alone = wrk(ours.port, script, seconds)
            with ExitStack() as stack:
                for _ in range(READERS):
                    reader = stack.enter_context(socket.create_connection(("127.0.0.1", ours.port)))
                    reader.sendall(requests)
                answered = -1
                while answered != (answered := answered_by(ours.port)):  # until there is no room for another answer
                    time.sleep(1)
                rows.append((alone, wrk(ours.port, script, seconds)))
    (rate, p99), (other_rate, other_p99) = (np.median([row[side] for row in rows], axis=0) for side in (0, 1))
    print(
        f"slow      p99 {other_p99:.2f} ms beside {READERS} that read nothing, {p99:.2f} ms without: "
        f"{other_p99 / p99:.2f} times (bar 2), the middle of {turns} turns; "
        f"{other_rate:,.0f} and {rate:,.0f} requests/s, 0 refused"
    )


# -- a client that believes nothing -----------------------------------------------------------------------------------


class Client:
    """Asks over a few connections and checks every answer."""

    def __init__(self, port: int, users: list[int], expected: dict[str, dict[int, list[int]]]) -> None:
        self.port, self.users, self.expected = port, users, expected
        self.counts: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.failures: list[str] = []
        self.enough = False
        self.happened: list[tuple[float, str]] = []

    def mark(self, what: str) -> None:
        """Remember when something was done to the service."""
        self.happened.append((time.monotonic(), what))

    async def run(self, connections: int = CONNECTIONS) -> None:
        """Ask until told that it is enough."""
        await asyncio.gather(*(self._connection(number) for number in range(connections)))

    async def _connection(self, number: int) -> None:
        chance = random.Random(number)
        while not self.enough:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:  # nobody listens: nothing was asked
                self.counts["refused"] += 1
                await asyncio.sleep(0.05)
                continue
            answered = 0
            try:
                while not self.enough:
                    user = chance.choice(self.users)
                    text = f"GET /v1/recommend?user={user}&N={N} HTTP/1.1\r\nHost: x\r\n\r\n"
                    writer.write(text.encode())
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
                    body = await reader.readexactly(length)
                    self._check(user, head, body)
                    answered += 1
                    if b"connection: close" in head.lower():
                        break
            except (OSError, asyncio.IncompleteReadError) as error:
                self.counts["failed"] += 1
                when, what = self.happened[-1] if self.happened else (time.monotonic(), "the start")
                self.failures.append(f"{error!r} {time.monotonic() - when:.2f} s after {what}, answer {answered + 1}")
            finally:
                writer.close()

    def _check(self, user: int, head: bytes, body: bytes) -> None:
        self.counts["asked"] += 1
        if not head.startswith(b"HTTP/1.1 200"):
            self.counts["failed"] += 1
            self.failures.append(head.split(b"\r\n")[0].decode())
            return
        answer = json.loads(body)
        named = re.search(rb"(?i)x-model: (\S+)", head)[1].decode()
        self.models[named] += 1
        ids = [row["item"] for row in answer["items"]]
        if named != answer["model"] or ids != self.expected[named][user]:
            self.counts["mixed"] += 1


def expectations(paths: list[Path], users: list[int]) -> dict[str, dict[int, list[int]]]:
    """Return what each model recommends to some users."""
    from sadrec import SAD
    from sadrec._core.files import checksum_of

    answer = {}
    for path in paths:
        model = SAD.load(path)
        lists, _ = model.recommend(users, N=N)
        answer[checksum_of(path)] = dict(zip(users, lists.tolist(), strict=True))
    return answer


def replace_file(source: Path, target: Path) -> None:
    """Put a copy of a file in the place of another, at once."""
    part = target.with_suffix(".part")
    shutil.copyfile(source, part)
    part.replace(target)


def report(name: str, client: Client, rest: str = "") -> None:
    """Print what a client has seen."""
    counts = client.counts
    print(
        f"{name:<9} {counts['asked']:,} asked, {counts['failed']} failed, {counts['mixed']} mixed, "
        f"{counts['refused']} refused connections, {len(client.models)} models answered{rest}"
    )
    for failure in client.failures[:20]:
        print(f"          {failure}")


def reloads_of(port: int) -> int:
    """Return how many times the service has taken another model."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        return int(float(re.search(r"sadrec_reloads_total ([\d.]+)", page.read().decode())[1]))


async def reload(folder: Path, users: list[int], paths: list[Path], reloads: int, seconds: float) -> None:
    """Replace the model under load."""
    model = folder / "served.sad"
    replace_file(paths[0], model)
    some = users[:: max(1, len(users) // 200)]
    with Serving(model, "--reload-seconds", "0.2") as serving:
        client = Client(serving.port, some, expectations(paths, some))
        asking = asyncio.create_task(client.run())
        began = time.monotonic()
        for turn in range(reloads):
            await asyncio.sleep(max(0.0, began + seconds * turn / reloads - time.monotonic()))
            replace_file(paths[(turn + 1) % 2], model)
            for _ in range(300):  # two changes of the file within one load would be one reload
                if await asyncio.to_thread(reloads_of, serving.port) > turn:
                    break
                await asyncio.sleep(0.1)
        spent = time.monotonic() - began
        client.enough = True
        await asking
        done = reloads_of(serving.port)
    report("reload", client, f"; {done} of {reloads} reloads done in {spent:.0f} s")


async def signals(users: list[int], paths: list[Path], requests: int) -> None:
    """Replace the workers by SIGHUP under load, then end the service by SIGTERM under load."""
    some = users[:: max(1, len(users) // 200)]
    with Serving(paths[0], "--workers", "2") as serving:
        serving.wait_for_workers(2)
        client = Client(serving.port, some, expectations(paths[:1], some))
        asking = asyncio.create_task(client.run())
        rolled, step = 0, requests // 6
        while client.counts["asked"] < requests:
            await asyncio.sleep(0.05)
            if rolled < 4 and client.counts["asked"] > step * (rolled + 1):
                rolled += 1
                serving.process.send_signal(signal.SIGHUP)
                client.mark("SIGHUP")
        serving.process.send_signal(signal.SIGTERM)
        client.mark("SIGTERM")
        while serving.process.poll() is None:
            await asyncio.sleep(0.05)
        client.enough = True
        await asking
        report("signals", client, f"; {rolled} times SIGHUP, then SIGTERM: exit code {serving.process.returncode}")


async def kill(users: list[int], paths: list[Path], seconds: float) -> None:
    """Kill one of two workers under load."""
    some = users[:: max(1, len(users) // 200)]
    with Serving(paths[0], "--workers", "2") as serving:
        serving.wait_for_workers(2)
        client = Client(serving.port, some, expectations(paths[:1], some))
        asking = asyncio.create_task(client.run())
        await asyncio.sleep(seconds / 2)
        os.kill(serving.workers()[0], signal.SIGKILL)
        client.mark("SIGKILL")
        await asyncio.sleep(seconds / 2)
        client.enough = True
        await asking
    report("kill", client, f" (of at most {CONNECTIONS} in flight)")


def memory(folder: Path, users: list[int], model: Path, requests: int) -> None:
    """Compare the memory of a worker before and after many requests."""
    if shutil.which("wrk") is None:
        print("memory    left out: wrk is not installed")
        return
    script = folder / "users.lua"
    script.write_text(SCRIPT.format(least=min(users), most=max(users), N=N))

    def resident(process: int) -> float:
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1]) / 1024

    with Serving(model) as serving:
        worker = serving.workers()[0]
        rate, _ = wrk(serving.port, script, 5)
        before, count = resident(worker), 0.0
        while count < requests:
            rate, _ = wrk(serving.port, script, 20)
            count += 20 * rate
        after = resident(worker)
    print(f"memory    {before:.1f} MB, after {count:,.0f} requests {after:.1f} MB: {100 * (after / before - 1):+.2f} %")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("first", "speed", "slow", "reload", "signals", "kill", "memory")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--turns", type=int, default=5, help="turns of the comparison of speed")
    parser.add_argument("--turn-seconds", type=int, default=4)
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0, help="over which the reloads are spread")
    parser.add_argument("--requests", type=int, default=50_000, help="requests under signals")
    parser.add_argument("--memory-requests", type=int, default=200_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        users, paths = save_models(folder)
        if "first" in given.only:
            first(users, paths[0])
        if "speed" in given.only:
            speed(folder, users, paths[0], given.turns, given.turn_seconds)
        if "slow" in given.only:
            slow(folder, users, paths[0], given.turns, given.turn_seconds)
        if "reload" in given.only:
            asyncio.run(reload(folder, users, paths, given.reloads, given.seconds))
        if "signals" in given.only:
            asyncio.run(signals(users, paths, given.requests))
        if "kill" in given.only:
            asyncio.run(kill(users, paths, 6.0))
        if "memory" in given.only:
            memory(folder, users, paths[0], given.memory_requests)


if __name__ == "__main__":
    main()
