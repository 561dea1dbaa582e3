"""Damaged files of the service: hashed keys, the log of answers, the table of items, the model that is exchanged.

Nobody is let in who has no key; answers that are logged after the damage are read again; a table of items is read or
refused in one line; whatever a changed file holds, the model that answered before goes on answering.
"""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from campaigns._mutations import damaged, lying
from campaigns._subjects import fitted
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec import Comparisons
from sadrec.serving import Keys, ServeSettings, new_key
from sadrec.serving.catalogue import catalogue
from sadrec.serving.events import EventLog
from sadrec.serving.loaded import Loaded
from sadrec.serving.metrics import Metrics
from sadrec.serving.reload import Reloader, load_warm

STRANGERS = [f"sadrec_{number}" for number in range(50)] + ["", " ", "0" * 64, "#"]


class Subject(NamedTuple):
    """Good files: the keys and their file, a log, tables of items by ending, a model, and all of it served."""

    keys: list[str]
    key_file: bytes
    log: bytes
    tables: dict[str, bytes]
    model: bytes
    served: Loaded


def prepare(folder: Path) -> Subject:
    """Make keys, a log and tables for a model."""
    with quiet_warnings():
        model = fitted("sad")
        model.save(folder / "model")
        served = load_warm(ServeSettings(str(folder / "model")))
    keys = [new_key(folder / "keys", f"person {number} é") for number in range(3)]
    log = EventLog(folder / "log.jsonl")
    log.append([_event(f"user {number % 5}", number) for number in range(20)])
    table = pl.DataFrame({"item": model.items, "title": [f'Title "{n}", é' for n in range(len(model.items))]})
    table.write_csv(folder / "a.csv")
    table.write_csv(folder / "a.tsv", separator="\t")
    table.write_parquet(folder / "a.parquet")
    tables = {ending: (folder / f"a{ending}").read_bytes() for ending in (".csv", ".tsv", ".parquet")}
    files = {name: (folder / name).read_bytes() for name in ("keys", "log.jsonl", "model")}
    return Subject(keys, files["keys"], files["log.jsonl"], tables, files["model"], served)


def _event(user: str, number: int) -> dict[str, Any]:
    return {"user": user, "winner": f"item {number}", "loser": f"item {number + 1}", "time": 1.5 + number, "model": "m"}


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Damage one of the files and use it."""
    what = (_keys, _log, _items, _exchange)[int(rng.choice(4, p=[0.3, 0.3, 0.3, 0.1]))]
    try:
        with quiet_warnings():
            return what(subject, rng, folder)
    except (ValueError, TypeError, OSError) as error:
        if "\n" in str(error) or str(folder) not in str(error):
            return Outcome("other errors", f"{what.__name__}: {type(error).__name__} names no file: {error}")
        return Outcome("said in one line")
    except BaseException as error:
        return Outcome("other errors", f"{what.__name__}: {type(error).__name__}: {error}")


def _allowed(keys: Keys, given: list[str]) -> list[bool]:
    return [keys.allow([(b"x-api-key", key.encode())]) for key in given]


def _keys(subject: Subject, rng: Random, folder: Path) -> Outcome:
    path = folder / "keys"
    path.write_bytes(subject.key_file)
    reread = Keys(path)
    path.write_bytes(damaged(subject.key_file, rng))
    reread.refresh()
    if any(_allowed(reread, STRANGERS)):
        return Outcome("strangers let in", str(path.read_bytes()))
    keys = Keys(path)
    if any(_allowed(keys, STRANGERS)):
        return Outcome("strangers let in", str(path.read_bytes()))
    same = all(_allowed(keys, subject.keys))
    return Outcome("same content" if same else "read, content not vouched for")


def _log(subject: Subject, rng: Random, folder: Path) -> Outcome:
    path = folder / "log.jsonl"
    path.write_bytes(damaged(subject.log, rng))
    kept = path.read_bytes()
    log = EventLog(path)
    log.append([_event("newcomer", number) for number in range(100, 103)])
    log.close()
    data = Comparisons.read(path)
    sides = data.users[data.user_index], data.items[data.winner_index], data.items[data.loser_index]
    triples = {tuple(map(str, triple)) for triple in zip(*sides, strict=True)}
    new = {("newcomer", f"item {number}", f"item {number + 1}") for number in range(100, 103)}
    old = {tuple(_event(f"user {n % 5}", n)[key] for key in ("user", "winner", "loser")) for n in range(20)}
    if not new <= triples:
        return Outcome("answers lost", str(kept))
    lines = set(subject.log.splitlines()) - set(kept.splitlines())
    if len(old - triples) > len(lines):
        return Outcome("answers lost", f"{old - triples}: {kept!r}")
    return Outcome("same content" if triples == new | old else "read, content not vouched for")


def _items(subject: Subject, rng: Random, folder: Path) -> Outcome:
    ending = list(subject.tables)[int(rng.integers(len(subject.tables)))]
    path = folder / f"items{ending}"
    path.write_bytes(damaged(subject.tables[ending], rng))
    items = catalogue(subject.served.model.state.items, path)
    wanted = [f'Title "{n}", é' for n in range(len(items.ids))]
    return Outcome("same content" if items.titles == wanted else "read, content not vouched for")


def _exchange(subject: Subject, rng: Random, folder: Path) -> Outcome:
    model, items = folder / "model", folder / "items.csv"
    model.write_bytes(subject.model)
    items.write_bytes(subject.tables[".csv"])
    store = Reloader(ServeSettings(str(model), items=str(items)), Metrics(), subject.served)
    store._seen = store.signature()
    if rng.random() < 0.5:
        model.write_bytes((damaged if rng.random() < 0.5 else lying)(subject.model, rng))
    else:
        items.write_bytes(damaged(subject.tables[".csv"], rng))
    asyncio.run(store.look())
    answers = store.current is not None and np.array_equal(
        store.current.model.user_factors, subject.served.model.user_factors
    )
    return Outcome("same content") if answers else Outcome("other answers")


CAMPAIGN = Campaign(
    unit="damaged files of the service",
    kept=("same content", "said in one line", "read, content not vouched for"),
    broken=("strangers let in", "answers lost", "other answers", "other errors"),
    prepare=prepare,
    trial=trial,
    seconds=60,
    memory=3.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=1000)
