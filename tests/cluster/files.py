"""What happens inside the namespace: fits on files that workers read, compared with fits on one machine."""

import json

import numpy as np
import polars as pl
from click.testing import CliRunner
from scenes import LONGER, SMALL, actors, gone, heard, kill_actor, kill_node, once, same

from sadrec import SAD, Interactions
from sadrec.cli import main
from sadrec.cluster import Ray


def table(rows=2500):
    rng = np.random.default_rng(0)
    user, item = (90 * rng.random(rows) ** 2).astype(np.int64), (47 * rng.random(rows) ** 2).astype(np.int64)
    names = {"user": [f"u{n}" for n in user.tolist()], "item": item * 3 - 20}
    return pl.DataFrame({**names, "rating": rng.integers(1, 6, rows), "timestamp": rng.integers(99, size=rows)})


def written(folder, frame):
    folder.mkdir()
    for number, start in enumerate(range(0, len(frame), 700)):
        frame[start : start + 700].write_parquet(folder / f"part-{number}.parquet")
    return folder


def answers(model, users):
    ids, scores = model.recommend(users, N=5)
    one, _ = model.recommend(users[3], N=5)
    return ids.tolist(), scores.tolist(), one.tolist(), model.preference(users[1], model.items[0], model.items[1])


def fits(made, folder):
    """Fit, save to a folder, load, ask; on the command line too."""
    result = {}
    data = written(folder / "data", table())
    short = {"blocks": 5, "random_state": 3, "iterations": 2, "num_threads": 1}
    whole = SAD(**short).fit(Interactions.read(data, duplicates="last"), False)
    model = SAD(**short).fit(data, False, engine=Ray(workers=2, collect=True))
    good = same(model, whole) and model.settings == whole.settings and np.array_equal(model.users, whole.users)
    result["default settings"] = good and (model.state.seen != whole.seen).nnz == 0
    result["collecting ends the workers"] = gone()
    whole = SAD(**SMALL).fit(Interactions.read(data, duplicates="last"), False)
    model = SAD(**SMALL).fit(data, False, engine=Ray(workers=2))
    result["the users stay away"] = len(actors()) == 2 and model.similar_items(1)[0].size > 0
    try:
        model.recommend("u1")
    except ValueError as error:
        result["said"] = str(error)
    model.save(folder / "model")
    result["saving ends the workers"] = gone()
    for name, read in (
        ("saved", model),
        ("loaded", SAD.load(folder / "model")),
        ("mapped", SAD.load(folder / "model", mmap=True)),
    ):
        result[name] = answers(read, whole.users) == answers(whole, whole.users)
    for name, one, engine in (("here", whole, None), ("there", model, Ray(workers=2))):
        one.recommend_all(N=3, output=folder / name, engine=engine, part_users=20, show_progress=False)
    parts = [sorted(path.read_bytes() for path in (folder / name).glob("*.parquet")) for name in ("here", "there")]
    result["recommend_all"] = parts[0] == parts[1] and len(parts[0]) > 3
    files = sorted(map(str, data.glob("*.parquet")))
    options = ["--factors", "6", "--iterations", "3", "--learning-rate", "0.1", "--blocks", "5", "--seed", "3"]
    options += ["--regularization", "0.01", "--rival-regularization", "0.002", "--engine", "ray", "--workers", "2"]
    call = CliRunner().invoke(main, ["fit", *files, "-o", f"{folder}/cli/", *options, "--quiet"])
    result["the command line"] = call.exit_code == 0 and same(SAD.load(folder / "cli"), whole)
    shown = CliRunner().invoke(main, ["recommend", f"{folder}/cli", "--user", "u7", "--json"])
    result["sadrec recommend"] = json.loads(shown.output)["items"] == whole.recommend("u7")[0].tolist()
    return result


def kills(made, folder):
    """Kill a worker and a node while they train on files, and the last worker before its users are saved."""
    result = {}
    data = written(folder / "data", table())
    whole = SAD(**LONGER).fit(Interactions.read(data, duplicates="last"), False)

    def fit(action, collect, **more):
        assert gone()
        engine = Ray(workers=2, spare_seconds=6, collect=collect)
        return SAD(**LONGER).fit(data, False, engine=engine, callbacks=[once(2, action)], **more)

    with heard() as told:
        result["a worker"] = same(fit(kill_actor, True), whole) and len(told) == 1
        checkpoint = str(folder / "checkpoint")
        model = fit(lambda: kill_node(made), False, checkpoint=checkpoint)
        result["a node without a spare"] = any("no place for 1 of 2" in text for text in told)
        kill_actor()
        try:
            model.save(folder / "model")
        except RuntimeError as error:
            result["said"] = str(error)
        model = SAD(**LONGER).fit(data, False, engine=Ray(workers=1), checkpoint=checkpoint)
        model.save(folder / "model")
        result["the same bits"] = same(SAD.load(folder / "model"), whole) and len(model.state.history) == 4
    return {**result, "told": told}
