"""What happens inside the namespace, on a real cluster, compared with one machine. Kills are in ``campaigns``."""

import json
import traceback
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp
from click.testing import CliRunner

from campaigns.cluster import actors, gone, same
from sadrec import SAD, Comparisons, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray
from sadrec.models import ExportPart, ExportWork

SMALL = {"factors": 6, "iterations": 3, "learning_rate": 0.1, "blocks": 5, "random_state": 3, "num_threads": 1}
SMALL |= {"regularization": 0.01, "rival_regularization": 0.002, "loss": "pairwise"}
LONGER = {**SMALL, "iterations": 4}


def table(rows=2500):
    rng = np.random.default_rng(0)
    user, item = (90 * rng.random(rows) ** 2).astype(np.int64), (47 * rng.random(rows) ** 2).astype(np.int64)
    names = {"user": [f"u{n}" for n in user.tolist()], "item": item * 3 - 20}
    columns = {"timestamp": rng.integers(99, size=rows), "trust": rng.integers(8, size=rows) / 4}
    return pl.DataFrame({**names, "rating": rng.integers(1, 6, rows), **columns})


def written(folder, frame):
    folder.mkdir()
    for number, start in enumerate(range(0, len(frame), 700)):
        frame[start : start + 700].write_parquet(folder / f"part-{number}.parquet")
    return folder


def compared(read, count=300):
    """Return comparisons, with weights, of users and items that were read."""
    rng = np.random.default_rng(1)
    user, winner = (rng.integers(len(ids), size=count) for ids in (read.users, read.items))
    loser = (winner + rng.integers(1, len(read.items), count)) % len(read.items)
    columns = {"user": read.users[user], "winner": read.items[winner], "loser": read.items[loser]}
    return pl.DataFrame({**columns, "weight": rng.random(count)})


def answers(model, users):
    ids, scores = model.recommend(users, N=5)
    one, _ = model.recommend(users[3], N=5)
    return ids.tolist(), scores.tolist(), one.tolist(), model.preference(users[1], model.items[0], model.items[1])


def fits(made, folder):
    """Fit, bring the model here or write it to a file, ask; on the command line too."""
    result, data = {}, written(folder / "data", table())
    read = Interactions.read(data, duplicates="last")
    short = {"blocks": 5, "random_state": 3, "iterations": 2, "num_threads": 1}
    whole, model = (SAD(**short).fit(data, False, engine=engine) for engine in (None, Ray(workers=2)))
    good = same(model, whole) and model.settings == whole.settings and np.array_equal(model.users, whole.users)
    result["default settings"] = good and (model.state.seen != whole.state.seen).nnz == 0
    gone()
    result["the workers end"] = not actors()
    whole = SAD(**SMALL).fit(data, False)
    for workers in (2, 3):
        model = SAD(**SMALL).fit(data, False, engine=Ray(workers=workers))
        likelihood = [[figures["log_likelihood"] for figures in one.state.history] for one in (model, whole)]
        result[f"{workers} workers"] = same(model, whole) and likelihood[0] == likelihood[1]
    feedback = {"comparisons": Comparisons.from_frame(compared(read)), "weights": "trust"}
    both = (SAD(**SMALL).fit(data, False, engine=engine, **feedback) for engine in (None, Ray(workers=3)))
    result["weights and comparisons"] = same(*both)
    model = SAD(**SMALL).fit(data, False, engine=Ray(workers=2, output=folder / "model.sad"))
    for name, read in (
        ("written", model),
        ("loaded", SAD.load(folder / "model.sad")),
        ("mapped", SAD.load(folder / "model.sad", mmap=True)),
    ):
        result[name] = same(read, whole) and answers(read, whole.users) == answers(whole, whole.users)
    for name, one, engine in (("here", whole, None), ("there", model, Ray(workers=2))):
        one.recommend_all(N=3, output=folder / name, engine=engine, part_users=20, show_progress=False)
    parts = [sorted(path.read_bytes() for path in (folder / name).glob("*.parquet")) for name in ("here", "there")]
    result["recommend_all"] = parts[0] == parts[1] and len(parts[0]) > 3
    files = sorted(map(str, data.glob("*.parquet")))
    options = ["--factors", "6", "--iterations", "3", "--learning-rate", "0.1", "--blocks", "5", "--seed", "3"]
    options += ["--regularization", "0.01", "--rival-regularization", "0.002", "--loss", "pairwise"]
    options += ["--engine", "ray", "--workers", "2"]
    call = CliRunner().invoke(main, ["fit", *files, "-o", f"{folder}/cli.sad", *options, "--quiet"])
    result["the command line"] = call.exit_code == 0 and same(SAD.load(folder / "cli.sad"), whole)
    shown = CliRunner().invoke(main, ["recommend", f"{folder}/cli.sad", "--user", "u7", "--json"])
    result["sadrec recommend"] = json.loads(shown.output)["items"] == whole.recommend("u7")[0].tolist()
    return result


def model_of(users=500, items=900):
    rng = np.random.default_rng(0)
    seen = sp.random(users, items, 0.02, "csr", np.float32, rng)
    factors = rng.normal(size=(users, 8)), rng.normal(size=(items, 8)), rng.random((items, 8))
    return SAD.from_factors(*factors, users=[f"u{n}" for n in rng.permutation(users)], seen=seen)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def everybody(made, folder):
    """Compare the files of a cluster with those of one process."""
    model = model_of()
    model.save(folder / "m.sad")
    mapped = SAD.load(folder / "m.sad", mmap=True)
    given = sp.random(500, 900, 0.01, "csr", np.float32, np.random.default_rng(2))
    options = {"part_users": 50, "show_progress": False}
    questions = {
        "a model in memory": (model, {}),
        "a model of a file": (mapped, {"N": 10**6, "part_users": 200}),
        "some users": (mapped, {"users": model.users[::3].tolist(), "filter_already_liked_items": False}),
        "other exclusions": (model, {"user_items": Interactions.from_csr(given, model.users, model.items)}),
        "nobody": (mapped, {"users": []}),
    }
    result = {}
    for name, (one, changed) in questions.items():
        here, there = folder / f"{name} here", folder / f"{name} there"
        one.recommend_all(output=here, **options | changed)
        rows = one.recommend_all(output=there, engine=Ray(workers=2), **options | changed).collect()
        manifest = json.loads((there / "_manifest.json").read_text())
        result[name] = contents(here) == contents(there) and len(rows) == manifest["rows"]
    mapped.recommend_all(N=3, output=folder / "here", show_progress=False)
    call = ["recommend", str(folder / "m.sad"), "--all", "-n", "3", "-o", f"{folder}/there/", "--engine", "ray"]
    output = CliRunner().invoke(main, [*call, "--workers", "1", "--quiet"]).output
    result["the command line"] = "500 users" in output and contents(folder / "here") == contents(folder / "there")
    return {**result, "told": refused(folder)}


def refused(folder):
    """Return what a worker says that cannot see the model."""
    work, parts = ExportWork(folder / "gone.sad", "", None, None, folder), [ExportPart(0, range(3))]
    try:
        Ray(workers=1).write_parts(work, parts, print)
    except FileNotFoundError as error:
        return str(error)
    return "nothing"


def one_after_another(made, folder):
    """Play everything on one cluster of three nodes, which takes long to start; what fails is told and left."""
    results = {}
    for name, scene in (("fits", fits), ("everybody", everybody)):
        (own := Path(folder) / name).mkdir()
        try:
            results[name] = scene(made, own)
        except Exception:
            results[name] = {"error": traceback.format_exc()}
    return results
