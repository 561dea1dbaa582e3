"""Kills on a cluster: SIGKILL of a worker, of a node with and without a spare, of the program, at random moments.

    python -m campaigns.cluster --count 20            # kills; every fit must end with the bits of one machine
    python -m campaigns.cluster --demo                # three nodes train, one is killed: make demo-cluster

The cluster is on this machine, in a network namespace with nothing but loopback (:mod:`campaigns._namespace`).
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import polars as pl

from campaigns import _namespace
from sadrec import SAD

KINDS = ("a worker", "a node with a spare", "a node without", "the program")
SETTINGS: dict[str, Any] = {"factors": 32, "iterations": 12, "learning_rate": 0.05, "regularization": 0.01}
SETTINGS |= {"rival_regularization": 0.001, "negative_candidates": 4, "blocks": 8, "loss": "pairwise"}


class Subject(NamedTuple):
    """Files that workers read, the settings, and the model of one machine."""

    settings: dict[str, Any]
    path: str
    whole: SAD

    def fit(self, engine: Any, **options: Any) -> SAD:
        """Train on workers."""
        return _fit(self.settings, self.path, engine, **options)


def _fit(settings: dict[str, Any], path: str, engine: Any = None, **options: Any) -> SAD:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*rows repeat a")
        return SAD(**settings).fit(path, False, engine=engine, weights="trust", **options)


def prepare(folder: str, rows: int = 60_000, **settings: Any) -> Subject:
    """Write interactions with weights, and ids in words, to four files."""
    rng, most = np.random.default_rng(0), rows // 4
    for number in range(4):
        user, item = rng.integers(rows // 40, size=most), (rows // 100 * rng.random(most) ** 2).astype(np.int64)
        names = {"user": [f"user {one}" for one in user], "item": [f"item {one}" for one in item]}
        columns = {**names, "timestamp": rng.permutation(most), "trust": rng.integers(5, size=most) / 2}
        pl.DataFrame(columns).write_parquet(Path(folder) / f"part-{number}.parquet")
    chosen = {**SETTINGS, **settings}
    return Subject(chosen, folder, _fit(chosen, folder))


def same(one: SAD, other: SAD) -> bool:
    """Tell whether two models have the same bits."""
    names = ("user_factors", "item_factors", "rival_factors", "item_bias")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def actors() -> list[Any]:
    """Return the processes of workers, without those that are dead and that nobody has asked about."""
    import psutil

    workers = (process for process in psutil.process_iter() if process.name().startswith("ray::Actor"))
    return [process for process in workers if process.status() != psutil.STATUS_ZOMBIE]


def kill_worker(pick: float) -> bool:
    """Kill one of the workers; tell whether there was one."""
    workers = actors()
    if workers:
        os.kill(workers[int(pick * len(workers))].pid, signal.SIGKILL)
    return bool(workers)


def kill_node(made: Any) -> bool:
    """Kill a node that has a worker, other than the first, to which this program is connected."""
    busy = {process.ppid() for process in actors()}
    for node in list(made.worker_nodes):
        if {entry.process.pid for entry in node.all_processes["raylet"]} & busy:
            made.remove_node(node, allow_graceful=False)
            return True
    return False


def program(address: str, checkpoint: str, path: str) -> None:
    """Train until the end, or until somebody kills this process."""
    from sadrec.cluster import Ray

    _fit(SETTINGS, path, Ray(workers=2, address=address), checkpoint=checkpoint)


def kill_the_program(subject: Subject, made: Any, folder: str, epoch: int, delay: float) -> tuple[bool, str]:
    """Kill the program after an epoch (0: as soon as there are workers), and run it again."""
    from sadrec.cluster import Ray

    command = [sys.executable, "-m", "campaigns.cluster", "--program", made.address, folder, subject.path]
    driver = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while driver.poll() is None:
        if list(Path(folder).glob(f"epoch-{epoch:06d}.manifest")) if epoch else actors():
            break
        time.sleep(0.02)
    time.sleep(delay)
    driver.kill()
    driver.wait()
    begun: list[int] = []
    model = subject.fit(Ray(workers=2), checkpoint=folder, callbacks=[lambda now, *rest: begun.append(now)])
    good = same(model, subject.whole) and len(model.state.history) == subject.settings["iterations"]
    return good, f"killed {_when(epoch, delay)}, went on with epoch {min(begun, default='none')}"


def _when(epoch: int, delay: float) -> str:
    return f"{delay:.2f} s after {f'epoch {epoch}' if epoch else 'the workers were there'}"


def trial(kind: str, made: Any, subject: Subject, rng: np.random.Generator) -> tuple[bool, str]:
    """Train while something is killed; return whether all ended as promised, and what was done."""
    from sadrec.cluster import Ray

    epochs = subject.settings["iterations"]
    epoch, delay, pick = int(rng.integers(1, epochs - 5)), float(rng.random()) * 0.3, float(rng.random())
    if rng.random() < 0.3:
        epoch, delay = 0, 3 * delay  # while they start and read
    with tempfile.TemporaryDirectory() as folder:
        if kind == "the program":
            return kill_the_program(subject, made, folder, epoch, delay)
        killed: list[bool] = []
        over: list[bool] = []

        def kill() -> None:
            while not epoch and not actors():
                time.sleep(0.02)
            time.sleep(delay)
            while not (done := kill_worker(pick) if kind == "a worker" else kill_node(made)) and not over:
                time.sleep(0.02)
            killed.append(done)

        def at(now: int, figures: Any, model: Any) -> None:
            if now == epoch and not threads:
                threads.append(threading.Thread(target=kill))
                threads[0].start()

        threads: list[threading.Thread] = []
        if not epoch:
            at(0, None, None)
        workers = 3 if kind == "a node without" else 2
        checkpoint = folder if rng.random() < 0.5 else None
        output = f"{folder}/model.sad" if rng.random() < 0.5 else None
        engine = Ray(workers=workers, spare_seconds=8, output=output)
        model = subject.fit(engine, checkpoint=checkpoint, callbacks=[at])
        over.append(True)
        for thread in threads:
            thread.join()
        kept = "with a checkpoint" if checkpoint else "without a checkpoint"
        done = "killed" if killed == [True] else "NOTHING WAS LEFT TO KILL"
        return same(model, subject.whole) and len(
            model.state.history
        ) == epochs, f"{done} {_when(epoch, delay)}, {kept}"


def gone() -> None:
    """Wait until the workers of an earlier fit have ended."""
    until = time.monotonic() + 30
    while actors() and time.monotonic() < until:
        time.sleep(0.05)


def campaign(count: int, seed: int, subject: Subject) -> bool:
    """Do so many trials; return whether all ended as promised."""
    rng, kept = np.random.default_rng(seed), 0
    made = _namespace.start(3, cpus=1)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        while len(made.worker_nodes) < 2:
            _namespace.add_node(made)
        gone()
        began = time.perf_counter()
        good, what = trial(kind, made, subject, rng)
        kept += good
        verdict = "the same bits" if good else "BROKEN"
        click.echo(f"{number + 1:>3} {kind}: {what}; {verdict} after {time.perf_counter() - began:.0f} s")
    click.echo(f"{kept} of {count} ended as promised")
    _namespace.end(made)
    return kept == count


def demo(folder: str) -> bool:
    """Train on three nodes, kill one, and say whether the bits are those of this process."""
    from sadrec.cluster import Ray

    click.echo("Training on one machine: 400,000 interactions, 30 epochs ...")
    subject = prepare(folder, 400_000, iterations=30)
    click.echo("Starting three Ray nodes, on loopback ...")
    made = _namespace.start(3, cpus=1)
    killed: list[bool] = []

    def at(now: int, figures: Any, model: Any) -> None:
        if now == 1 or now % 10 == 0:
            spent = ", ".join(f"{name} {figures[f'{name}_share']:.0%}" for name in ("training", "moving", "waiting"))
            speed, moved = figures["updates_per_second"] / 1e6, figures["moved_bytes"] / 1e6
            click.echo(f"  epoch {now}: {speed:.1f} M updates/s, {moved:.1f} MB between workers; {spent}")
        if now == 12 and not killed:
            killed.append(kill_node(made))
            click.echo("  killed a node with its worker: nobody has room for another, so the others go on")

    click.echo("Training on three workers ...")
    model = subject.fit(Ray(workers=3, spare_seconds=5), callbacks=[at])
    good = same(model, subject.whole) and killed == [True]
    click.echo("The model has the same bits as on one machine." if good else "THE MODEL HAS OTHER BITS.")
    _namespace.end(made)
    return good


@click.command()
@click.option("--count", type=click.IntRange(1), default=20, show_default=True, help="How many kills.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@click.option("--demo", "shown", is_flag=True, help="Train on three nodes, kill one, compare the bits.")
@click.option("--program", "arguments", nargs=3, hidden=True)
def main(count: int, seed: int, shown: bool, arguments: tuple[str, str, str] | None) -> None:
    """Kill workers, nodes and programs while they train. The exit code is 1 where a promise is broken."""
    if arguments:
        program(*arguments)
    elif _namespace.inside():
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(not (demo(folder) if shown else campaign(count, seed, prepare(folder))))
    elif reason := _namespace.reason_against():
        raise click.ClickException(reason)
    else:
        sys.exit(_namespace.run(sys.executable, "-m", "campaigns.cluster", *sys.argv[1:]).returncode)


if __name__ == "__main__":
    main()
