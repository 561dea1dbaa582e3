"""What the campaigns share: trials in a child that may die, outcomes that are counted, and one line that sums them up.

A campaign is a number of trials. Each does some harm, drawn from the seed and the trial's number, and says what came of
it in a word. Words are declared beforehand: some keep what the library promises, some break it. Trials run in a child
process with a limit of memory and time, one after the other; where it dies, that is the outcome of the trial it was at,
and a new child goes on with the next one.
"""

import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import numpy as np
from tqdm import tqdm

Random = np.random.Generator

CRASH, ENDLESS = "crashes", "endless"
"""What breaks every promise: the child died of a signal, or had to be ended."""
GIGABYTE = 2**30
PREPARATION = 900.0
"""Seconds until the trials begin: kernels may have to be compiled first."""
EVERY = 30.0
"""Seconds after which a run without a terminal says what came of it so far: it may be ended from outside."""


class Outcome(NamedTuple):
    """What came of a trial: a declared word, where it needs one an explanation, and what it counted itself."""

    word: str
    detail: str = ""
    figures: dict[str, int] | None = None  # added up over all trials


@dataclass(frozen=True)
class Campaign:
    """What is tried, and the words for what comes of it."""

    unit: str  # what is counted: "kills"
    kept: tuple[str, ...]
    broken: tuple[str, ...]
    prepare: Callable[[Path], Any]  # makes, in a folder of the child, what all trials use
    trial: Callable[[Any, Random, Path], Outcome]  # gets that, random numbers and an empty folder
    seconds: float = 120.0  # for one trial
    memory: float = 1.0  # GiB beyond what is in use when the trials begin
    told: Callable[[Counter[str]], str] | None = None  # puts the sums of what the trials counted into words


@dataclass
class Report:
    """The counted outcomes of a campaign, what broke a promise, and the most memory a child had."""

    campaign: Campaign
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[int, Outcome]] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    peak: int = 0

    def add(self, number: int, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome.word not in (*self.campaign.kept, *self.campaign.broken, CRASH, ENDLESS):
            raise ValueError(f"{outcome.word!r} is not a declared outcome")
        self.counts[outcome.word] += 1
        self.figures.update(outcome.figures or {})
        if outcome.word not in self.campaign.kept:
            self.broken.append((number, outcome))

    def __str__(self) -> str:
        words = (*self.campaign.kept, *self.campaign.broken, CRASH, ENDLESS)
        counted = ", ".join(f"{self.counts[word]:,} {word}" for word in words)
        line = f"{self.counts.total():,} {self.campaign.unit}: {counted}; peak memory {self.peak // 2**20} MiB"
        return line if self.campaign.told is None else f"{line}; {self.campaign.told(self.figures)}"


def run(
    campaign: Campaign, numbers: range, seed: int = 0, show_progress: bool = True, kept: Path | None = None
) -> Report:
    """Carry out the trials of some numbers; those whose outcomes a file has kept are not repeated."""
    report = Report(campaign)
    outcomes = _kept_in(kept, seed, report)
    left = [number for number in numbers if number not in outcomes]
    for number in numbers:
        if number in outcomes:
            report.add(number, outcomes[number])
    tqdm.monitor_interval = 0  # its thread would be copied, half-way, into the children
    bar = tqdm(total=len(left), unit="trial", disable=None if show_progress else True)
    reported = time.monotonic()
    with bar, tempfile.TemporaryDirectory(prefix="sadrec-campaign-") as folder:
        while left:
            for number, outcome in _in_child(campaign, left, seed, Path(folder), report):
                report.add(number, outcome)
                left.remove(number)
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(
                            "\n" + json.dumps([seed, number, *outcome, report.peak])
                        )  # after a line that was cut
                bar.update()
                if show_progress and bar.disable and left and time.monotonic() - reported >= EVERY:
                    click.echo(f"so far: {report}", err=True)
                    reported = time.monotonic()
    return report


def _kept_in(file: Path | None, seed: int, report: Report) -> dict[int, Outcome]:
    """Return the outcomes that a file has kept of trials with a seed, and note the most memory that they took."""
    outcomes = {}
    for line in file.read_text().splitlines() if file is not None and file.exists() else []:
        with suppress(ValueError):  # the last line may be cut
            its_seed, number, *outcome, peak = json.loads(line)
            if its_seed == seed:
                outcomes[number] = Outcome(*outcome)
                report.peak = max(report.peak, peak)
    return outcomes


def _in_child(
    campaign: Campaign, numbers: list[int], seed: int, folder: Path, report: Report
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcomes of trials in one child, until all are done or it dies."""
    receive, send = os.pipe()
    log = folder / "log"
    child = os.fork()
    if child == 0:
        os.close(receive)
        _do_trials(campaign, numbers, seed, folder, send, log)
    os.close(send)
    begun = False
    with os.fdopen(receive, "r") as lines:
        for number in [-1, *numbers]:
            patience = campaign.seconds if begun else PREPARATION
            ready, _, _ = select.select([lines], [], [], patience)
            if not ready:
                os.kill(child, signal.SIGKILL)
            line = lines.readline() if ready else ""
            if not line:
                _, status = os.waitpid(child, 0)
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child, signal.SIGKILL)  # what the trial has left running
                log_text = log.read_text(errors="replace")[-2000:] if log.exists() else ""
                if not begun:
                    raise RuntimeError(f"the trials could not be prepared:\n{log_text}")
                code = os.waitstatus_to_exitcode(status)
                why = f"signal {-code}" if code < 0 else f"exit code {code}"
                word, detail = (ENDLESS, f"after {campaign.seconds:g} s") if not ready else (CRASH, why)
                yield number, Outcome(word, f"{detail}\n{log_text}")
                return
            begun = True
            *outcome, peak = json.loads(line)
            report.peak = max(report.peak, peak)
            if number >= 0:
                yield number, Outcome(*outcome)
    os.waitpid(child, 0)


def _do_trials(campaign: Campaign, numbers: list[int], seed: int, folder: Path, send: int, log: Path) -> NoReturn:
    """Do trials in a child and send a line about each; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
        _say_to(log)
        faulthandler.enable(2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        common = folder / "common"
        shutil.rmtree(common, ignore_errors=True)
        common.mkdir()
        subject = campaign.prepare(common)
        limit_memory(campaign.memory)
        _send(send, Outcome("ready"))
        for number in numbers:
            place = folder / "trial"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            os.truncate(log, 0)
            _send(send, campaign.trial(subject, np.random.default_rng((seed, number)), place))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say_to(log: Path) -> None:
    """Let what this process and its libraries say go to a file."""
    output = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o666)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout = sys.stderr = os.fdopen(output, "w", buffering=1, errors="replace")


def _send(pipe: int, outcome: Outcome) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = json.dumps([outcome.word, outcome.detail[-3000:], outcome.figures, peak]) + "\n"
    os.write(pipe, line.encode())


def limit_memory(gigabytes: float) -> None:
    """Let this process have so much memory beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(gigabytes * GIGABYTE)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


# -- a process that is disturbed --------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a process ended, what it said, and for how long it ran."""

    code: int  # below 0: the signal it died of
    output: str
    seconds: float


def in_fork(
    work: Callable[[], Any], folder: Path, disturb: Callable[[int], None] = lambda child: None, seconds: float = 120.0
) -> Ended:
    """Do some work in a fork of this process and disturb it from outside.

    Whatever the work raises, it ends with the exit code 1, and 130 after Ctrl-C, as a program does.
    """
    log = folder.parent / f"{folder.name}.said"
    began = time.monotonic()
    # Until the child has a handler for it, a signal would unwind this program in the child, and clear away its folder.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)
            _say_to(log)
            faulthandler.register(signal.SIGALRM, 2, chain=True)  # says where it stood
            signal.setitimer(signal.ITIMER_REAL, seconds)  # ends it, unless it is over before
            work()
            code = 0
        except KeyboardInterrupt:
            code = 130
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)
    disturb(child)
    _, status = os.waitpid(child, 0)
    output = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    return Ended(os.waitstatus_to_exitcode(status), output, time.monotonic() - began)


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of every file under a folder, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Leave out warnings, of Python and of the library's log."""
    import logging
    import warnings

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


# -- the program -------------------------------------------------------------------------------------------------------


def main(campaign: Campaign, usual: int) -> None:
    """Be the program of a campaign."""

    @click.command(help=f"Count what comes of {campaign.unit}. The exit code is 1 where a promise is broken.")
    @click.option("--count", type=click.IntRange(min=1), default=usual, show_default=True, help="How many trials.")
    @click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
    @click.option("--trial", type=click.IntRange(min=0), help="Repeat one trial, by its number.")
    @click.option(
        "--keep", type=click.Path(dir_okay=False, path_type=Path), help="Keep outcomes here and go on from it."
    )
    @click.option("--quiet", is_flag=True, help="No progress bar.")
    def program(count: int, seed: int, trial: int | None, keep: Path | None, quiet: bool) -> None:
        numbers = range(count) if trial is None else range(trial, trial + 1)
        report = run(campaign, numbers, seed, not quiet, keep)
        for number, outcome in report.broken[:20]:
            click.echo(f"trial {number} (--seed {seed} --trial {number}): {outcome.word}: {outcome.detail}", err=True)
        click.echo(str(report))
        sys.exit(1 if report.broken else 0)

    program()
