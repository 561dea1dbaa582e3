"""Work that is killed and interrupted: fits, searches, studies and answers, in a program of one's own or by a command.

Each writes into a folder: what it keeps to resume from, which goes when all is done, and the result.
"""

import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from campaigns._subjects import answers, clicks
from campaigns._trials import Outcome, in_fork, quiet_warnings, tree
from sadrec import BPR, SAD
from sadrec._core.files import write_whole
from sadrec._core.record import discard
from sadrec.cli import main as command_line
from sadrec.evaluation import tune
from sadrec.posterior import GibbsSAD
from studies._tools import Unit, run


def _fit(make: Callable[[], Any], data: Callable[[], Any], seconds: float, folder: Path) -> None:
    """Fit with checkpoints, save the model, remove the checkpoints: what `sadrec fit` does."""
    kept = folder / "model.checkpoint"
    model = make().fit(data(), show_progress=False, checkpoint=kept, checkpoint_seconds=seconds)
    model.save(folder / "model")
    discard(kept)


def _squares(number: int) -> dict[str, Any]:
    """Compute a piece of a study, which takes a moment."""
    rng = np.random.default_rng(number)
    return {"sum": float(sum(float(rng.standard_normal(50).sum()) for _ in range(60)))}


def _study(folder: Path) -> None:
    """Compute a study and write its result."""
    units = [Unit(f"unit-{number}", {"number": number}, partial(_squares, number)) for number in range(8)]
    results = run(folder / "study", units, "study", show_progress=False)
    write_whole(folder / "result", "\n".join(str(result["sum"]) for result in results))
    discard(folder / "study" / "runs")
    shutil.rmtree(folder / "study", ignore_errors=True)


def _tune(threads: int, folder: Path) -> None:
    """Choose settings and write them."""
    model, space = BPR(3, iterations=4, num_threads=threads), {"learning_rate": [0.02, 0.05, 0.1, 0.2]}
    result = tune(model, clicks(), sampler="grid", space=space, path=folder / "trials", show_progress=False)
    result.save(folder / "settings.json")
    discard(folder / "trials")


def _command(folder: Path, *arguments: str, kept: str = "") -> None:
    """Run a command on a table of interactions, then remove what it has kept to resume from."""
    table = folder.parent / f"{folder.name}.csv"
    if not table.exists():
        write_whole(table, "user,item\n" + "".join(f"{row},{column}\n" for row, column in _entries()))
    if code := command_line([arguments[0], str(table), *arguments[1:], "--quiet"], standalone_mode=False):
        raise SystemExit(code)
    table.unlink()
    if kept:
        discard(folder / kept)


def _ask(folder: Path, command: str, *arguments: str) -> None:
    """Ask a model, by a command, for a file or a folder of answers."""
    path = folder.parent / f"{folder.name}.sad"
    if not path.exists():
        _asked().save(path)
    if code := command_line([command, str(path), *arguments], standalone_mode=False):
        raise SystemExit(code)
    path.unlink()


@cache
def _asked() -> SAD:
    return SAD(4, iterations=3, num_threads=1).fit(many_clicks(), show_progress=False)


def _entries() -> list[tuple[int, int]]:
    matrix = many_clicks().matrix.tocoo()
    return [*zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)]


@cache
def many_clicks() -> Any:
    """Return interactions that take some milliseconds an epoch."""
    return clicks(300, 200)


def works(threads: int = 1) -> dict[str, Callable[[Path], None]]:
    """Return what is done, by name."""
    sad = partial(SAD, factors=4, iterations=8, bias=True, num_threads=threads)
    softmax = partial(
        SAD, 4, iterations=6, loss="softmax", advanced={"negatives": 16, "length": 2}, num_threads=threads
    )
    _asked()  # once, before anything forks
    small = ["--factors", "4", "--iterations", "6", "--threads", str(threads)]
    return {
        "fit": partial(_fit, sad, many_clicks, 0.0),
        "fit, seldom saved": partial(_fit, sad, many_clicks, 0.02),
        "adaptive": partial(
            _fit, partial(SAD, 3, iterations=8, advanced={"adaptive": True}, num_threads=threads), many_clicks, 0.0
        ),
        "softmax": partial(_fit, softmax, many_clicks, 0.0),
        "bpr": partial(_fit, partial(BPR, 4, iterations=6, blocks=4, num_threads=threads), many_clicks, 0.0),
        "variational": partial(_fit, partial(SAD, 2, iterations=12, num_threads=threads), answers, 0.0),
        "posterior": partial(
            _fit, partial(GibbsSAD, factors=2, draws=60, warmup=20, chains=2, num_threads=threads), answers, 0.001
        ),
        "study": _study,
        "tune": partial(_tune, threads),
        "sadrec fit": lambda folder: _command(folder, "fit", "-o", f"{folder}/model", *small),
        "sadrec fit --checkpoint": lambda folder: _command(
            folder, "fit", "-o", f"{folder}/model", "--checkpoint", f"{folder}/kept", *small, kept="kept"
        ),
        "sadrec tune": lambda folder: _command(
            folder,
            *("tune", "-o", f"{folder}/best.json", "--model", "bpr", "--factors", "3", "--iterations", "3"),
            *("--sampler", "grid", "--try", "learning-rate=0.05,0.1,0.2", "--threads", str(threads)),
            kept="best.json.trials",
        ),
        "sadrec export": lambda folder: _ask(folder, "export", "--vectors", f"{folder}/vectors.parquet"),
        "sadrec recommend -o FILE": lambda folder: _ask(
            folder, "recommend", "--all", "-o", f"{folder}/lists.csv", "--quiet"
        ),
        "sadrec recommend -o FOLDER": lambda folder: _ask(
            folder, "recommend", "--all", "--method", "wins", "-o", f"{folder}/lists/", "--quiet"
        ),
    }


def results(folder: Path, calls: dict[str, Callable[[Path], None]]) -> dict[str, dict[str, bytes]]:
    """Do all the work undisturbed; return the files that it leaves, by name of the work.

    Commands run in forks, as they will be disturbed: polars, which reads their tables, does not survive a fork.
    """
    files = {}
    with quiet_warnings():
        for name, call in calls.items():
            place = folder / name
            place.mkdir(parents=True)
            if name.startswith("sadrec "):
                ended = in_fork(partial(call, place), place, seconds=300)
                if ended.code:
                    raise RuntimeError(f"{name}: {ended.output}")
            else:
                call(place)
            files[name] = tree(place)
    return files


OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")
"""Operations on files that Python tells audit hooks about."""


def done_again(call: Callable[[Path], None], place: Path, wanted: dict[str, bytes], story: str) -> Outcome:
    """Do some work once more after it was disturbed: it leaves the files of undisturbed work, and no others."""
    where = f"{story}; then there were {sorted(tree(place))}"

    def again() -> None:
        with quiet_warnings():
            call(place)

    ended = in_fork(again, place)
    if ended.code != 0:
        return Outcome("failed again", f"{where}: {ended.code} {ended.output}")
    files = tree(place)
    if any(files.get(file) != content for file, content in wanted.items()):
        return Outcome("wrong bits", where)
    others = sorted(set(files) - set(wanted))
    return Outcome("litter", f"{where}: {others}") if others else Outcome("same bits")
