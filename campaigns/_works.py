"""Work that is killed and interrupted: fits that leave checkpoints and a file, as a program of one's own would.

Each writes into a folder: what it keeps to resume from, which goes when all is done, and the result.
"""

import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from campaigns._subjects import answers, clicks
from campaigns._trials import quiet_warnings, tree
from sadrec import BPR, SAD
from sadrec._record import discard
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
    from sadrec._files import write_whole

    units = [Unit(f"unit-{number}", {"number": number}, partial(_squares, number)) for number in range(8)]
    results = run(folder / "study", units, "study", show_progress=False)
    write_whole(folder / "result", "\n".join(str(result["sum"]) for result in results))
    discard(folder / "study" / "runs")
    shutil.rmtree(folder / "study", ignore_errors=True)


@cache
def many_clicks() -> Any:
    """Return interactions that take some milliseconds an epoch."""
    return clicks(300, 200)


def works(threads: int = 1) -> dict[str, Callable[[Path], None]]:
    """Return what is done, by name."""
    sad = partial(SAD, factors=4, iterations=8, bias=True, num_threads=threads)
    return {
        "fit": partial(_fit, sad, many_clicks, 0.0),
        "fit, seldom saved": partial(_fit, sad, many_clicks, 0.02),
        "adaptive": partial(_fit, partial(SAD, 3, iterations=4, adaptive=True, num_threads=threads), many_clicks, 0.0),
        "bpr": partial(_fit, partial(BPR, 4, iterations=6, blocks=4, num_threads=threads), many_clicks, 0.0),
        "variational": partial(_fit, partial(SAD, 2, iterations=12, num_threads=threads), answers, 0.0),
        "posterior": partial(
            _fit, partial(GibbsSAD, factors=2, draws=60, warmup=20, chains=2, num_threads=threads), answers, 0.001
        ),
        "study": _study,
    }


def results(folder: Path, calls: dict[str, Callable[[Path], None]]) -> dict[str, dict[str, bytes]]:
    """Do all the work undisturbed; return the files that it leaves, by name of the work."""
    found = {}
    with quiet_warnings():
        for name, call in calls.items():
            place = folder / name
            call(place)
            found[name] = tree(place)
    return found


OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")
"""Operations on files that Python tells audit hooks about."""
