"""What happens inside the namespace: fits on a real cluster, compared with fits on one machine."""

import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import polars as pl
import psutil

from campaigns import _namespace
from sadrec import SAD, Comparisons, Interactions
from sadrec.cluster import Ray

SMALL = {"factors": 6, "iterations": 3, "learning_rate": 0.1, "blocks": 5, "random_state": 3, "num_threads": 1}
SMALL |= {"regularization": 0.01, "rival_regularization": 0.002, "loss": "pairwise"}


def clicks(users=61, items=47):
    rng = np.random.default_rng(0)
    return Interactions.from_csr(np.where(rng.random((users, items)) < 0.2, rng.integers(1, 6, (users, items)), 0))


def said(data):
    rng = np.random.default_rng(1)
    user, winner = (rng.integers(count, size=400) for count in data.matrix.shape)
    loser = (winner + 1) % data.matrix.shape[1]
    columns = {"user": data.users[user], "winner": data.items[winner], "loser": data.items[loser]}
    return Comparisons.from_frame(pl.DataFrame(columns))


def same(one, other):
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("user_factors", "item_factors", "rival_factors")]
    pairs += [] if one.item_bias is None else [(one.item_bias, other.item_bias)]
    return all(np.array_equal(a, b) for a, b in pairs)


def same_bits(made, folder):
    data, result = clicks(), {}
    whole = SAD(**SMALL).fit(data, show_progress=False)
    for workers in (2, 3):
        model = SAD(**SMALL).fit(data, show_progress=False, engine=Ray(workers=workers))
        likelihood = [figures["log_likelihood"] for figures in model.state.history]
        result[f"{workers} workers"] = same(model, whole) and likelihood == [
            figures["log_likelihood"] for figures in whole.state.history
        ]
    later = clicks(70, 50)
    models = (SAD(**SMALL).fit(later, False, warm_start=whole, engine=engine) for engine in (None, Ray(workers=2)))
    result["a warm start"] = same(*models)
    mixed = {**SMALL, "order_share": 0.4, "bias": False}
    more = {"comparisons": said(data), "weights": np.linspace(0, 2, data.matrix.nnz).astype(np.float32)}
    whole, model = (SAD(**mixed).fit(data, False, engine=engine, **more) for engine in (None, Ray(workers=3)))
    return {**result, "with pairs": same(model, whole)}


LONGER = {**SMALL, "iterations": 4}


def actors():
    """Return the processes of workers, without those that are dead and that nobody has asked about."""
    return living("ray::Actor")


def living(name):
    """Return the processes with such a name; some end while one looks."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if process.name().startswith(name) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def once(epoch, action):
    """Return a callback that does something after an epoch, the first time."""
    done = []

    def call(now, figures, model):
        if now == epoch and not done:
            done.append(now)
            action()

    return call


@contextmanager
def heard():
    """Collect what the library says in the meantime."""
    told, handler = [], logging.StreamHandler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("sadrec").addHandler(handler)
    yield told
    logging.getLogger("sadrec").removeHandler(handler)


def kill_actor():
    os.kill(actors()[0].pid, signal.SIGKILL)


def gone():
    """Tell whether the workers of an earlier fit end, which takes them a moment."""
    until = time.monotonic() + 30
    while actors() and time.monotonic() < until:
        time.sleep(0.05)
    return not actors()


def kill_node(made):
    """Kill a node, other than the first, that has a worker, and with it the worker, as a machine that is lost does."""
    busy = actors()
    for node in sorted(made.worker_nodes, key=lambda node: node.unique_id):
        raylets = {entry.process.pid for entry in node.all_processes["raylet"]}
        if lost := [process.pid for process in busy if process.ppid() in raylets]:
            made.remove_node(node, allow_graceful=False)
            for process in filter(psutil.pid_exists, lost):
                os.kill(process, signal.SIGKILL)
            return
    raise AssertionError("no node but the first has a worker")


def kills(made, folder):
    """Kill a worker, a node with a spare, a node without."""
    data, result = clicks(), {}
    whole = SAD(**LONGER).fit(data, show_progress=False)

    def fit(action, **more):
        assert gone()
        engine = Ray(workers=2, spare_seconds=6)
        return same(SAD(**LONGER).fit(data, False, engine=engine, callbacks=[once(2, action)], **more), whole)

    with heard() as told:
        result["a worker"] = fit(kill_actor) and len(told) == 1 and "epoch 3" in told[0]
        result["a node with a spare"] = fit(lambda: kill_node(made)) and not any("no place" in text for text in told)
        result["a node without"] = fit(lambda: kill_node(made), checkpoint=folder / "checkpoint") and any(
            "no place for 1 of 2" in t for t in told
        )
    return {**result, "told": told}


def resumed(made, folder):
    """Kill the program that trains, and run it again."""
    data, folder = clicks(), folder / "checkpoint"
    whole = SAD(**LONGER).fit(data, show_progress=False)
    program = f"import scenes; scenes.train({made.address!r}, {str(folder)!r})"
    driver = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parent)
    while not (folder / "epoch-000002.manifest").exists():
        assert driver.poll() is None
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    epochs = []
    model = SAD(**LONGER).fit(
        data, False, engine=Ray(workers=1), checkpoint=folder, callbacks=[lambda *now: epochs.append(now[0])]
    )
    return {"same": same(model, whole), "epochs": epochs, "history": len(model.state.history)}


def train(address, folder):
    SAD(**LONGER).fit(clicks(), False, engine=Ray(workers=2, address=address), checkpoint=folder, callbacks=[wait])


def wait(epoch, figures, model):
    time.sleep(2 if epoch > 2 else 0)


def one_after_another(made, folder):
    """Play everything on one cluster of three nodes, which takes long to start; what fails is told and left."""
    import files
    import lists

    results = {}
    for name, scene, nodes in (
        ("bits", same_bits, 3),
        ("resumed", resumed, 3),
        ("files", files.fits, 3),
        ("lists", lists.same_rows, 3),
        ("killed lists", lists.kills, 3),
        ("resumed lists", lists.again, 3),
        ("killed", kills, 3),  # leaves one node
        ("killed files", files.kills, 2),
    ):
        while 1 + len(made.worker_nodes) < nodes:
            _namespace.add_node(made)
        (own := Path(folder) / name).mkdir()
        try:
            results[name] = scene(made, own)
        except Exception:
            results[name] = {"error": traceback.format_exc()}
    return results
