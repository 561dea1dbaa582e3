"""Recommendations for everybody, written to a folder part by part, and resumable.

The folder holds ``part-000000.parquet``, ... and, once all are there, ``_manifest.json``. While parts are missing, a
record of each finished one is kept in ``.work``. A part is written whole or not at all, and its rows depend on nothing
but the question: one that is written twice, by a worker that was given up too early, is the same.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
import scipy.sparse as sp
import xxhash

from sadrec._core import check
from sadrec._core.files import FileFormatError, checksum_of, fingerprint, plain, write_arrays, write_whole
from sadrec._core.record import CheckpointError, Records, differences, discard, locked
from sadrec._core.types import METHODS, Method, Positions
from sadrec.data import Interactions
from sadrec.data.ids import Ids
from sadrec.data.parquet import id_batches
from sadrec.models.files import pack_seen
from sadrec.models.state import State
from sadrec.ranking.top_n import recommend

logger = logging.getLogger("sadrec")

FORMAT = 1
MANIFEST = "_manifest.json"
_KIND = "recommendations"
_WORK = ".work"
_PARTS, _LEAST_USERS, _MOST_USERS, _MOST_ROWS = 64, 2048, 65536, 2**20


@dataclass(frozen=True)
class ListRequest:
    """The request: the same for every user."""

    N: int
    method: Method = "margin"
    candidates: int = 200
    leave_out: bool = True


class ExportPart(NamedTuple):
    """A part of the users: its number, and their positions."""

    number: int
    users: range | Positions

    @property
    def name(self) -> str:
        """The file."""
        return f"part-{self.number:06d}.parquet"


class Written(NamedTuple):
    """A finished part."""

    name: str
    users: int
    rows: int
    bytes: int
    checksum: str


class ExportWork(NamedTuple):
    """The work of a worker: files that it can reach, and the request."""

    model: Path
    checksum: str
    excluded: Path | None
    question: ListRequest
    folder: Path


class PartEngine(Protocol):
    """An engine that writes parts in other processes, such as ``sadrec.cluster.Ray``."""

    def write_parts(self, work: ExportWork, parts: Iterable[ExportPart], done: Callable[[Written], object]) -> None:
        """Have workers write every part, and call ``done`` after each."""
        ...


class Lists:
    """The best items of any users, as rows (user, rank, item, score): the same in every process."""

    def __init__(self, state: State, excluded: Any, question: ListRequest, num_threads: int) -> None:
        """Take a state and the items to leave out for each user (None: those seen in training)."""
        self._state, self._question, self._threads = state, question, num_threads
        self._excluded = state.seen if excluded is None else excluded

    @cached_property
    def _items(self) -> pl.Series:
        return pl.Series("item", self._state.items.array)

    def of(self, users: range | Positions, progress: Callable[[int], object] | None = None) -> pl.DataFrame:
        """Return the rows of some users; a user without items left has none."""
        rows, question = np.asarray(users, np.int64), self._question
        excluded = self._excluded
        if excluded is not None:
            excluded = excluded[users.start : users.stop] if isinstance(users, range) else excluded[rows]
        items, scores = recommend(
            self._state.belief,
            rows,
            question.N,
            method=question.method,
            candidates=question.candidates,
            liked=excluded,
            leave_out_liked=question.leave_out,
            index=self._state.index if self._state.belief.by_product else None,
            num_threads=self._threads,
            progress=progress,
        )
        real = items >= 0
        row, place = np.nonzero(real)
        names = pl.Series("user", self._state.users.array[rows])
        columns = names.gather(row), pl.Series("rank", (place + 1).astype(np.int32)), self._items.gather(items[real])
        return pl.DataFrame([*columns, pl.Series("score", scores[real])])

    def write(self, part: ExportPart, folder: Path, progress: Callable[[int], object] | None = None) -> Written:
        """Write the file of a part, whole or not at all."""
        frame, content = self.of(part.users, progress), BytesIO()
        frame.write_parquet(content)
        data = content.getvalue()
        write_whole(folder / part.name, data)
        return Written(part.name, len(part.users), len(frame), len(data), xxhash.xxh3_128_hexdigest(data))


def recommend_everybody(
    state: State,
    checksum: str,
    save: Callable[[Path], object],
    *,
    users: Any,
    user_items: Any,
    question: ListRequest,
    engine: PartEngine | None,
    output: str | Path,
    part_users: int | None,
    num_threads: int,
    show_progress: bool,
) -> pl.LazyFrame:
    """Write the best items of all users, or of some, and return the rows: see ``SAD.recommend_all``.

    ``checksum`` tells the model from others, and ``save`` writes it to a file for workers in other processes.
    """
    from sadrec._core.progress import Bar

    question = _checked(question, len(state.items))
    if engine is not None and not hasattr(engine, "write_parts"):
        raise TypeError(f"engine must be None (this process) or sadrec.cluster.Ray(...), not {engine!r}")
    chosen = requested(state.users, users)
    excluded = None if user_items is None else exclusions(state, user_items)
    size = _part_users(len(chosen), question.N, part_users)
    same = isinstance(chosen, range)
    identity = {
        "model": checksum,
        "users": len(chosen) if same else fingerprint(chosen),
        "user_items": None if excluded is None else fingerprint(excluded.indptr.astype(np.int64), excluded.indices),
        "filter_already_liked_items": question.leave_out,
        "N": question.N,
        "method": question.method,
        "candidates": None if question.method == "margin" else question.candidates,
        "part_users": size,
    }
    folder = Folder(output, identity)
    starts = range(0, max(len(chosen), 1), size)  # of no users, one part without rows
    with folder.held() as written:
        parts = [ExportPart(number, chosen[start : start + size]) for number, start in enumerate(starts)]
        left = [part for part in parts if part.name not in written]
        total, there = len(chosen), sum(part.users for part in written.values())
        title = "recommending"
        with Bar(total=total, initial=there, unit="user", desc=title, disable=None if show_progress else True) as bar:
            if not left:
                pass
            elif engine is None:
                lists = Lists(state, excluded, question, num_threads)
                for part in left:
                    folder.keep(lists.write(part, folder.path, bar.update))
            else:

                def done(part: Written) -> None:
                    folder.keep(part)
                    bar.update(part.users)

                engine.write_parts(_work(state, checksum, save, excluded, question, folder), left, done)
        folder.finish([part.name for part in parts])
    folder.tidy()
    return pl.scan_parquet([folder.path / part.name for part in parts])


def _checked(question: ListRequest, items: int) -> ListRequest:
    """Check the values; N is at most the number of items."""
    if question.method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {question.method!r}")
    N, candidates = check.whole(question.N, "N"), check.whole(question.candidates, "candidates", least=1)
    leave_out = check.flag(question.leave_out, "filter_already_liked_items")
    return ListRequest(min(N, items), question.method, candidates, leave_out)


def _part_users(users: int, N: int, given: int | None) -> int:
    """Return the number of users in a part: a 64th, within bounds for work and for memory."""
    if given is not None:
        return check.whole(given, "part_users", least=1)
    wanted = min(max(-(-users // _PARTS), _LEAST_USERS), _MOST_USERS)
    return max(min(wanted, _MOST_ROWS // max(N, 1)), 1)


def requested(all_users: Ids, users: Any) -> range | Positions:
    """Return the positions of the requested users, each once and in order; unknown ones raise an UnknownIdError.

    ``users`` are ids, a path of Parquet with a column of users, or None for all.
    """
    if users is None:
        return range(len(all_users))
    chosen = np.zeros(len(all_users), np.bool_)
    if isinstance(users, str | Path):
        for (ids,) in id_batches(users, ["user"]):
            chosen[all_users.positions(ids)] = True
    else:
        chosen[all_users.positions(users)] = True
    return range(len(all_users)) if chosen.all() else np.flatnonzero(chosen)


def exclusions(state: State, user_items: Any) -> Any:
    """Return the items to leave out, CSR (users x items); unknown users and items are ignored."""
    if isinstance(user_items, Interactions):
        entries = user_items.matrix.tocoo()
        pairs: Iterator[tuple[Any, Any]] = iter([(user_items.users[entries.row], user_items.items[entries.col])])
    elif isinstance(user_items, str | Path):
        pairs = ((users, items) for users, items in id_batches(user_items, ["user", "item"]))
    else:
        raise TypeError(
            "user_items must be Interactions or the path of Parquet (columns user, item), not "
            f"{type(user_items).__name__}"
        )
    rows, columns = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for users, items in pairs:
        both = state.users.known(users) & state.items.known(items)
        rows.append(state.users.positions(users[both]).astype(np.int32))
        columns.append(state.items.positions(items[both]).astype(np.int32))
    row, column = np.concatenate(rows), np.concatenate(columns)
    if not len(row):
        raise ValueError("user_items names no user of the model with an item of the model: are these the same ids?")
    shape = len(state.users), len(state.items)
    matrix = sp.csr_matrix((np.ones(len(row), np.float32), (row, column)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _work(
    state: State, checksum: str, save: Callable[[Path], object], excluded: Any, question: ListRequest, folder: "Folder"
) -> ExportWork:
    """Write the files that workers need; the model's own file is used if it still exists."""
    model = None
    if state.file is not None:
        try:
            model = state.file[0] if checksum_of(state.file[0]) == checksum else None
        except FileFormatError:  # gone, or another
            model = None
    if model is None:
        model = folder.work / "model.sad"
        save(model)
        checksum = checksum_of(model)
    path = None
    if excluded is not None:
        path = folder.work / "excluded"
        write_arrays(path, pack_seen(excluded), {"kind": "excluded", "shape": list(excluded.shape)})
    return ExportWork(model, checksum, path, question, folder.path)


class Folder:
    """A folder of parts of one request, identified by ``identity``."""

    def __init__(self, path: str | Path, identity: Mapping[str, Any]) -> None:
        if "://" in str(path):
            raise ValueError(
                f"output must be a folder that this system has mounted, not {str(path)!r}: mount it, or write to a "
                "folder and copy that once it has a _manifest.json"
            )
        self.path = Path(path).expanduser().absolute()
        self.work = self.path / _WORK
        self._identity = plain(identity)
        self._written: dict[str, Written] = {}
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{str(path)!r} is a file, and output must be a folder: choose another name")

    @contextmanager
    def held(self) -> Iterator[dict[str, Written]]:
        """Lock the folder for this process, and yield the finished parts."""
        manifest = self._manifest()
        if manifest is None and not self.work.is_dir() and self.path.is_dir() and any(self.path.iterdir()):
            raise CheckpointError(
                f"the folder {str(self.path)!r} holds other files: give a new folder, or an empty one"
            )
        with locked(self.work):
            self._records = Records(self.work, "record", self._identity)
            if self._records.read("plan") is None:
                self._records.write("plan", {"format": FORMAT})
            self._look(manifest)
            try:
                yield self._written
            except BaseException:
                if not self._written:  # another question may use the folder
                    self._records.remove("plan")
                raise

    def keep(self, part: Written) -> None:
        """Record a finished part."""
        file = self.path / part.name
        if not file.is_file() or file.stat().st_size != part.bytes:
            raise ValueError(
                f"a worker has written {part.name}, and it is not in {str(self.path)!r} here: output must be a folder "
                "that all nodes share"
            )
        self._records.write(Path(part.name).stem, part._asdict())
        self._written[part.name] = part

    def finish(self, names: list[str]) -> None:
        """Write the manifest, which marks the folder as complete."""
        parts = [self._written[name] for name in names]
        content = {
            "kind": _KIND,
            "format": FORMAT,
            "identity": self._identity,
            "users": sum(part.users for part in parts),
            "rows": sum(part.rows for part in parts),
            "parts": [part._asdict() for part in parts],
        }
        write_whole(self.path / MANIFEST, json.dumps(content, indent=1) + "\n")

    def tidy(self) -> None:
        """Remove records, and unfinished files of killed workers."""
        discard(self.work)
        for file in self.path.glob(".part-*.part"):
            file.unlink(missing_ok=True)

    def _manifest(self) -> dict[str, Any] | None:
        """Return the manifest, or None; the manifest of another request raises a CheckpointError."""
        content = read_manifest(self.path)
        if content is not None and content["identity"] != self._identity:
            different = ", ".join(differences(content["identity"], self._identity))
            raise CheckpointError(
                f"the folder {str(self.path)!r} holds the answers to another call ({different}): give another folder, "
                "or delete this one to start again"
            )
        return content

    def _look(self, manifest: Mapping[str, Any] | None) -> None:
        """Find the parts that are finished and undamaged."""
        if manifest is not None:
            parts = [Written(**part) for part in manifest["parts"]]
        else:
            names = (name for name in self._records.names() if name != "plan")
            records = (self._records.read(name) for name in names)
            parts = [Written(**record[0]) for record in records if record is not None]
        for part in parts:
            file = self.path / part.name
            if file.is_file() and _file_checksum(file) == part.checksum:
                self._written[part.name] = part
            else:
                logger.warning("%s is missing or damaged, and is computed again", file)
        if manifest is not None and len(self._written) < len(parts):
            (self.path / MANIFEST).unlink(missing_ok=True)  # what it says is not so any more
            for part in self._written.values():
                self._records.write(Path(part.name).stem, part._asdict())


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder of recommendations, or None if it is missing or damaged."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        parts = [Written(**part) for part in content["parts"]]
        named = [part.name for part in parts]
        counts = [number for part in parts for number in (part.users, part.rows, part.bytes)]
        if not all(map(check.is_whole, counts)) or any(Path(name).name != name for name in named):
            raise ValueError("its parts are not files of this folder")
        valid = content["kind"] == _KIND and content["format"] == FORMAT and isinstance(content["identity"], dict)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise CheckpointError(
            f"{str(folder / MANIFEST)!r} is damaged, or not of this version of sadrec: give another folder"
        )
    return dict(content)


def _file_checksum(path: Path) -> str:
    """Return the checksum of a file, a piece at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
