"""Damaged and forged checkpoints and records: the fit ends in the same bits, or the documented error is raised.

A fit, here or by workers of a cluster, a sampler, a search or a study is interrupted, its files are damaged, and the
same call is made again.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from campaigns import _workers
from campaigns._mutations import changed_value, damaged, forged, lying
from campaigns._subjects import MODELS, clicks, fitted, said
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings, tree
from sadrec import BPR
from sadrec._core.files import checksum_of, fingerprint
from sadrec.evaluation import compare, tune
from sadrec.models import CheckpointError
from studies._tools import Unit, run


class Work(NamedTuple):
    """Something that can be resumed: what to call with its folder, what is there half-way, and what comes of it."""

    name: str
    call: Callable[[Path], str]
    files: Mapping[str, bytes]
    result: str


class Enough(Exception):
    """Half of the work is done."""


def _fit(name: str, folder: Path, most: int | None = None) -> str:
    options: dict[str, Any] = {"checkpoint": folder, "checkpoint_seconds": 0}
    if most is not None and "posterior" not in name:

        def stop(epoch: int, figures: Any, model: Any) -> None:
            if epoch == most:
                raise Enough

        options["callbacks"] = [stop]
    return said(fitted(name, **options))


def _cluster(folder: Path, most: int | None = None) -> str:
    def stop(epoch: int, figures: Any) -> bool:
        if epoch == most:
            raise Enough
        return False

    return _workers.fit(folder, stop)


def _tune(folder: Path) -> str:
    model = BPR(factors=2, iterations=2, num_threads=1)
    space = {"learning_rate": [0.03, 0.1]}
    result = tune(model, clicks(), sampler="grid", space=space, path=folder, show_progress=False)
    return fingerprint([(trial.settings, trial.scores, trial.status) for trial in result.trials])


def _compare(folder: Path) -> str:
    models = {"one": BPR(factors=2, iterations=2, num_threads=1), "two": BPR(factors=1, iterations=1, num_threads=1)}
    result = compare(models, clicks(), 2, path=folder, show_progress=False)
    measures = [name for name in result.measures if "seconds" not in name]
    return fingerprint(
        [[result.values(model, name) for name in measures] for model in models],
        [[sorted(result.per_user(model, name).items()) for name in measures] for model in models],
    )


def _count(number: int) -> dict[str, Any]:
    return {"number": number, "squares": [number**2, number / 7, None], "text": "é" * number}


def _study(folder: Path) -> str:
    units = [Unit(f"unit-{number}", {"number": number}, partial(_count, number)) for number in range(3)]
    return fingerprint(run(folder, units, "study", show_progress=False))


def prepare(folder: Path) -> list[Work]:
    """Do all the work once, and keep what is on the disk half-way."""
    works = []
    calls: dict[str, Callable[..., str]] = {name: partial(_fit, name) for name in MODELS}
    calls |= {"cluster": _cluster, "tune": _tune, "compare": _compare, "study": _study}
    with quiet_warnings():
        for name, call in calls.items():
            whole, half = folder / name, folder / f"{name}, half"
            result = call(whole)
            with suppress(Enough):
                call(half, **({"most": 3} if name in MODELS or name == "cluster" else {}))
            files = {file: content for file, content in tree(half).items() if not Path(file).name.startswith(".")}
            works.append(Work(name, call, files, result))
    return works


def trial(works: list[Work], rng: Random, folder: Path) -> Outcome:
    """Damage some of the files of one kind of work, and do it again."""
    work = works[int(rng.integers(len(works)))]
    place = folder / "work"
    for name, content in work.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    chosen = [name for name in work.files if rng.random() < 0.5] or list(work.files)[-1:]
    hows = []
    for name in chosen:
        path = place / name
        how = ("damaged", "lying", "forged", "gone")[int(rng.choice(4, p=[0.4, 0.25, 0.25, 0.1]))]
        hows.append(how)
        if how == "gone":
            path.unlink()
        elif path.suffix == ".manifest":
            _change_manifest(path, how, rng)
        elif how == "forged":
            forged(path, rng, "numbers" if work.name in (*MODELS, "cluster") else "shapes")
            _name_checksum(path)
        else:
            path.write_bytes((damaged if how == "damaged" else lying)(path.read_bytes(), rng))
    where = f"{work.name}, {dict(zip(chosen, hows, strict=True))}"
    try:
        with quiet_warnings():
            result = work.call(place)
    except (CheckpointError, FileNotFoundError) as error:
        if isinstance(error, FileNotFoundError) and (work.name != "cluster" or "gone" not in hows):
            return Outcome("other errors", f"{where}: {type(error).__name__}: {error}")
        several = "\n" in str(error)
        return Outcome("other errors", f"{where}: several lines: {error}") if several else Outcome("refused")
    except Exception as error:
        return Outcome("other errors", f"{where}: {type(error).__name__}: {error}")
    if result != work.result:
        return Outcome("silent differences", where)
    parts = [path.name for path in place.iterdir() if path.suffix == ".part"]
    return Outcome("litter", f"{where}: {parts}") if parts else Outcome("same bits")


def _change_manifest(path: Path, how: str, rng: Random) -> None:
    """Change what the manifest of a cluster's checkpoint says: bytes, values, or values with a right digest."""
    if how == "damaged":
        path.write_bytes(damaged(path.read_bytes(), rng))
        return
    content = json.loads(path.read_bytes())
    digest = content.pop("digest")
    entries = {name: content.pop(name) for name in ("history", "stopped")}  # which are believed
    content = changed_value(content, rng)
    if isinstance(content, dict):
        content |= entries
        content["digest"] = fingerprint(content) if how == "forged" else digest
    path.write_text(json.dumps(content))


def _name_checksum(path: Path) -> None:
    """Have the manifest of a cluster's checkpoint, if one names the file, name the checksum that it has now."""
    for manifest in path.parent.glob("*.manifest"):
        try:
            content = json.loads(manifest.read_bytes())
            del content["digest"]
            content["checksums"][content["names"].index(path.name)] = checksum_of(path)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):  # it is damaged, or names other files
            continue
        manifest.write_text(json.dumps({**content, "digest": fingerprint(content)}))


CAMPAIGN = Campaign(
    memory=2.0,  # reading Parquet asks for one of them
    unit="damaged checkpoints and records",
    kept=("same bits", "refused"),
    broken=("silent differences", "other errors", "litter"),
    prepare=prepare,
    trial=trial,
    seconds=120,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=3000)
