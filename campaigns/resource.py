"""Too little of something: memory, room on the disk, size of a file, open files, a temporary folder, a home.

Commands run with a limit and end in the same files as without one, or say what is missing in one line and leave the
file that was there; run again without the limit, they end in the same files. One trial in a hundred fits a model as
``nobody``, from an installation that cannot be written to and without a home (where this process may arrange that).
"""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import sadrec
from campaigns._subjects import fitted
from campaigns._trials import (
    PREPARATION,
    Campaign,
    Ended,
    Outcome,
    Random,
    in_fork,
    limit_memory,
    main,
    quiet_warnings,
    tree,
)
from sadrec.cli import main as command_line

_NEW_MOUNTS = 0x00020000
"""The flag of unshare(2): mounts are this process's own."""
FIT = ["--factors", "3", "--iterations", "4", "--threads", "1", "--quiet"]
OUTPUTS = {"fit": "m.sad", "fit comparisons": "m.sad", "posterior": "p.posterior", "recommend": "lists.parquet"}
OUTPUTS |= {"export": "vectors.parquet"}
OTHERWISE = {"recommend": ["-n", "3"], "export": ["--only", "items"]}
"""How the file that is there before was made, where it is no model: tables replace their like alone."""


class Subject(NamedTuple):
    """Files to start from (one of them may be there before), the commands, their results, and perhaps a small disk."""

    inputs: Path
    old: dict[str, bytes]
    commands: dict[str, list[str]]
    results: dict[str, bytes]
    disk: Path | None


def prepare(folder: Path) -> Subject:
    """Write a table and a model, and run every command once."""
    inputs = folder / "inputs"
    inputs.mkdir()
    rng = np.random.default_rng(0)
    pairs = rng.choice(60 * 90, 1500, replace=False)
    rows = [f"u{pair // 90},i{pair % 90},{rng.integers(1, 6)}" for pair in pairs]
    (inputs / "clicks.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    answers = [(rng.integers(6), *rng.choice(9, 2, replace=False)) for _ in range(120)]
    lines = [",".join(map(str, row)) for row in answers]
    (inputs / "answers.csv").write_text("\n".join(["user,winner,loser", *lines]) + "\n")
    with quiet_warnings():
        fitted("sad").save(inputs / "model.sad")  # loads kernels, too; nothing here may use polars: children do
    sampling = ["--factors", "2", "--draws", "20", "--warmup", "10", "--chains", "2", "--threads", "1", "--quiet"]
    commands = {
        "fit": ["fit", str(inputs / "clicks.csv"), *FIT],
        "fit comparisons": ["fit", str(inputs / "answers.csv"), *FIT],
        "posterior": ["posterior", str(inputs / "answers.csv"), *sampling],
        "recommend": ["recommend", str(inputs / "model.sad"), "--all", "-n", "10"],
        "export": ["export", str(inputs / "model.sad")],
    }
    results = {}
    for name, arguments in commands.items():
        place = folder / name
        place.mkdir()
        for _ in range(2):
            ended = _run(name, arguments, place, seconds=PREPARATION / 4)  # the first time compiles
        if ended.code:
            raise RuntimeError(f"{name}: {ended.output}")
        results[name] = (place / OUTPUTS[name]).read_bytes()
    old = dict.fromkeys(commands, (inputs / "model.sad").read_bytes())
    for name, changes in OTHERWISE.items():
        place = folder / f"old {name}"
        place.mkdir()
        if (ended := _run(name, [*commands[name], *changes], place)).code:
            raise RuntimeError(f"{name}: {ended.output}")
        old[name] = (place / OUTPUTS[name]).read_bytes()
    return Subject(inputs, old, commands, results, _small_disk(folder / "disk"))


def _small_disk(place: Path) -> Path | None:
    """Mount a disk of a few hundred kilobytes, which goes with this process; None where that is not allowed."""
    place.mkdir()
    try:
        if ctypes.CDLL(None).unshare(_NEW_MOUNTS):
            return None
        for command in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "size=256k", "none", str(place)]):
            subprocess.run(["mount", *command], check=True, capture_output=True)
    except (AttributeError, OSError, subprocess.CalledProcessError):
        return None
    return place


def _run(
    name: str, arguments: list[str], place: Path, limit: str = "", amount: int = 0, seconds: float = 100.0
) -> Ended:
    """Run a command in a fork, with a limit."""

    def work() -> None:
        if limit == "size of files":
            resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))
        elif limit == "open files":
            used = len([*Path("/proc/self/fd").iterdir()])
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + amount, used + amount))
        elif limit == "memory":
            limit_memory(amount / 2**30)
        elif limit == "temporary folder":
            tempfile.tempdir = "/proc/nowhere"
            os.environ["TMPDIR"] = "/proc/nowhere"
        command_line([*arguments, "--vectors" if name == "export" else "-o", str(place / OUTPUTS[name])])

    return in_fork(work, place, seconds=seconds)


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Run a command with too little of something, then without the limit."""
    if rng.random() < 0.01:
        return _read_only(subject, folder)
    name = list(subject.commands)[int(rng.integers(len(subject.commands)))]
    limits = ["size of files", "open files", "memory", "temporary folder", *["room"] * (subject.disk is not None)]
    limit = limits[int(rng.integers(len(limits)))]
    amounts = {"size of files": (0, 40_000), "open files": (0, 12), "memory": (0, 2 * 2**30), "room": (0, 60_000)}
    amount = int(rng.integers(*amounts.get(limit, (0, 1))))
    place = subject.disk if limit == "room" and subject.disk is not None else folder / "work"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(exist_ok=True)
    before = bool(rng.random() < 0.5)
    output = place / OUTPUTS[name]
    if before:
        output.write_bytes(subject.old[name])
    if limit == "room":
        free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
        (place / "filler").write_bytes(bytes(max(0, free - amount)))
    ended = _run(name, subject.commands[name], place, limit, amount)
    (place / "filler").unlink(missing_ok=True)
    where = f"{name}, {limit} {amount:,}: exit code {ended.code}, {ended.output[-1500:]}"
    result = output.read_bytes() if output.exists() else None
    if ended.code == 0 and result != subject.results[name]:
        return Outcome("wrong results", where)
    if ended.code != 0 and result not in (subject.old[name] if before else None, subject.results[name]):
        return Outcome("wrong results", f"a torn file after {where}")
    errors = [line for line in ended.output.splitlines() if line.startswith(("Error: ", "Traceback"))]
    if ended.code > 0 and (len(errors) != 1 or not errors[0].startswith("Error: ")):
        return Outcome("no words", where)
    if ended.code < 0 and limit != "memory":
        return Outcome("no words", where)
    again = _run(name, subject.commands[name], place)
    if again.code or output.read_bytes() != subject.results[name]:
        return Outcome("wrong results", f"again: {again.code} {again.output[-500:]}; {where}")
    if others := sorted(set(tree(place)) - {output.name}):
        return Outcome("litter", f"{others}; {where}")
    if ended.code < 0:
        return Outcome("ended for want of memory")
    return Outcome("said in one line" if ended.code else "same results")


_NOBODY = """
set -e
mount --make-rprivate /
if [ -n "$CLOSED" ]; then  # a folder above Python's that nobody may pass: put an open one in its place
    mkdir -p "$WORK/hold"
    mount --bind "$BASE" "$WORK/hold"
    mount -t tmpfs -o mode=755 none "$CLOSED"
    mkdir -p "$BASE"
    mount --move "$WORK/hold" "$BASE"
fi
for folder in "$BASE" "$SITE" "$SOURCE"; do
    mount --bind "$folder" "$folder"
    mount -o remount,bind,ro "$folder"
done
exec setpriv --reuid=65534 --regid=65534 --clear-groups \\
    env -i PATH=/usr/bin:/bin HOME=/nonexistent TMPDIR="$WORK/tmp" PYTHONPATH="$SOURCE" "$@"
"""


def _read_only(subject: Subject, folder: Path) -> Outcome:
    """Fit a model as nobody, with nothing to write to but the folder of the result."""
    if os.geteuid() != 0 or subject.disk is None or not shutil.which("setpriv"):
        return Outcome("not possible here")
    base = Path(sys.base_prefix).resolve()
    closed = next((str(above) for above in reversed(base.parents) if not above.stat().st_mode & 1), "")
    work = folder / "work"
    (work / "tmp").mkdir(parents=True)
    for path in (work, work / "tmp"):
        os.chown(path, 65534, 65534)
    for above in work.resolve().parents:
        if not above.stat().st_mode & 1:
            above.chmod(above.stat().st_mode | 0o111)
    environment = {
        **os.environ,
        "CLOSED": closed,
        "WORK": str(work),
        "BASE": str(base),
        "SITE": sysconfig.get_path("purelib"),
        "SOURCE": str(Path(sadrec.__file__).parents[1]),
    }
    command = [sys.executable, "-m", "sadrec", *subject.commands["fit"], "-o", str(work / "m.sad")]
    program = ["unshare", "--mount", "sh", "-c", _NOBODY, "sh", *command]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=550)
    if run.returncode:
        return Outcome("no words", f"as nobody: {run.returncode} {run.stderr[-2000:]}")
    if (work / "m.sad").read_bytes() != subject.results["fit"]:
        return Outcome("wrong results", "as nobody")
    if run.stderr.count("\n") > 1:
        return Outcome("no words", f"as nobody, more than once: {run.stderr[-2000:]}")
    return Outcome("same results")


CAMPAIGN = Campaign(
    unit="commands with too little of something",
    kept=("same results", "said in one line", "ended for want of memory", "not possible here"),
    broken=("wrong results", "no words", "litter"),
    prepare=prepare,
    trial=trial,
    seconds=600,
    memory=16.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=200)
