"""What happens inside the namespace: recommendations for everybody on a real cluster."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from click.testing import CliRunner
from scenes import heard, living

from sadrec import SAD, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray
from sadrec.models.export import Part, Question, Work

SLOW = {"N": 5, "method": "wins", "part_users": 25, "show_progress": False}


def made(users=500, items=900):
    rng = np.random.default_rng(0)
    seen = sp.random(users, items, 0.02, "csr", np.float32, rng)
    factors = rng.normal(size=(users, 8)), rng.normal(size=(items, 8)), rng.random((items, 8))
    return SAD.from_factors(*factors, users=[f"u{n}" for n in rng.permutation(users)], seen=seen)


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def same_rows(cluster, folder):
    """Compare the files of a cluster with those of one process."""
    model = made()
    model.save(folder / "m.sad")
    mapped = SAD.load(folder / "m.sad", mmap=True)
    given = sp.random(500, 900, 0.01, "csr", np.float32, np.random.default_rng(2))
    asked = {"part_users": 50, "show_progress": False}
    questions = {
        "a model in memory": (model, {}),
        "a model of a file": (mapped, {"N": 10**6, "part_users": 200}),
        "some users": (mapped, {"users": model.users[::3].tolist(), "filter_already_liked_items": False}),
        "other exclusions": (model, {"exclude": Interactions.from_csr(given, model.users, model.items)}),
        "nobody": (mapped, {"users": []}),
    }
    result = {}
    for name, (one, more) in questions.items():
        here, there = folder / f"{name} here", folder / f"{name} there"
        one.recommend_all(output=here, **asked | more)
        rows = one.recommend_all(output=there, engine=Ray(workers=2), **asked | more).collect()
        manifest = json.loads((there / "_manifest.json").read_text())
        result[name] = files(here) == files(there) and len(rows) == manifest["rows"]
    mapped.recommend_all(N=3, output=folder / "here", show_progress=False)
    call = ["recommend", str(folder / "m.sad"), "--all", "-n", "3", "-o", f"{folder}/there/", "--engine", "ray"]
    said = CliRunner().invoke(main, [*call, "--workers", "1", "--quiet"]).output
    result["the command line"] = "500 users" in said and files(folder / "here") == files(folder / "there")
    return {**result, "told": refused(folder)}


def refused(folder):
    """Return what a worker says that cannot see the model."""
    work, parts = Work(folder / "gone.sad", "", None, Question(3), folder), [Part(0, range(3))]
    try:
        Ray(workers=1).write_parts(work, parts, print)
    except FileNotFoundError as error:
        return str(error)
    return "nothing"


def writers():
    """Return the processes that write a part now."""
    return [process.pid for process in living("ray::write_part")]


def until_begun(folder, parts=1):
    """Wait until so many parts are recorded."""
    while len(list(Path(folder).glob(".work/part-*.record"))) < parts:
        time.sleep(0.01)


def kills(cluster, folder):
    """Kill workers while they write."""
    model, killed = made(), []
    model.recommend_all(output=folder / "here", **SLOW)

    def kill():
        for parts in (2, 6, 9):
            until_begun(folder / "there", parts)
            while not (found := writers()):
                time.sleep(0.005)
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with heard() as told:
        model.recommend_all(output=folder / "there", engine=Ray(workers=2), **SLOW)
    killer.join(5)
    return {"same": files(folder / "here") == files(folder / "there"), "killed": len(killed), "told": told}


def again(cluster, folder):
    """Kill the program that asks, and ask again."""
    model = made()
    model.save(folder / "m.sad")
    model.recommend_all(output=folder / "here", **SLOW)
    program = f"import lists; lists.ask({cluster.address!r}, {str(folder)!r})"
    driver = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parent)
    until_begun(folder / "there", 3)
    driver.kill()
    driver.wait()
    before = len(list((folder / "there").glob(".work/part-*.record")))
    finished = (folder / "there" / "_manifest.json").exists()
    mapped = SAD.load(folder / "m.sad", mmap=True)
    mapped.recommend_all(output=folder / "there", engine=Ray(workers=1), **SLOW)
    return {"same": files(folder / "here") == files(folder / "there"), "before": before, "finished": finished}


def ask(address, folder):
    engine = Ray(workers=2, address=address)
    SAD.load(Path(folder) / "m.sad", mmap=True).recommend_all(output=Path(folder) / "there", engine=engine, **SLOW)
