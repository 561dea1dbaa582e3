"""Many at once: threads that ask while a model is fitted anew, any number of threads, forks, copies, other processes.

Answers are those of the model before the fit or after it and never a mixture; the same fit gives the same bits on 1 to
8 threads; a model answers the same after pickle, copy, joblib, fork and in a new process.
"""

import copy
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from campaigns._subjects import MODELS, answers, clicks, fitted, said
from campaigns._trials import Campaign, Outcome, Random, in_fork, main, quiet_warnings
from sadrec import BPR, SAD, Interactions
from sadrec._core.files import fingerprint
from sadrec.posterior import GibbsSAD


def _more_clicks() -> Any:
    return clicks(120, 90)


FITS: dict[str, tuple[Callable[[int], Any], Callable[[], Any]]] = {
    "sad": (lambda threads: SAD(8, iterations=3, bias=True, num_threads=threads), _more_clicks),
    "hard negatives": (
        lambda threads: SAD(8, iterations=3, loss="pairwise", negative_candidates=4, num_threads=threads),
        _more_clicks,
    ),
    "adaptive": (
        lambda threads: SAD(4, iterations=4, advanced={"adaptive": True}, blocks=6, num_threads=threads),
        _more_clicks,
    ),
    "order": (lambda threads: SAD(4, iterations=2, order_share=0.4, num_threads=threads), _more_clicks),
    "balance": (
        lambda threads: SAD(4, iterations=2, advanced={"user_balance": 0.5}, num_threads=threads),
        _more_clicks,
    ),
    "softmax": (
        lambda threads: SAD(
            4, iterations=3, loss="softmax", advanced={"negatives": 16, "length": 2}, blocks=6, num_threads=threads
        ),
        _more_clicks,
    ),
    "bpr": (lambda threads: BPR(4, iterations=3, blocks=8, num_threads=threads), _more_clicks),
    "variational": (lambda threads: SAD(2, iterations=10, num_threads=threads), answers),
    "posterior": (lambda threads: GibbsSAD(factors=2, draws=10, warmup=5, chains=3, num_threads=threads), answers),
}


class Subject(NamedTuple):
    """Fitted models and what they say, the bits of fits on one thread, and two sets of other names for the items."""

    models: dict[str, Any]
    answers: dict[str, str]
    bits: dict[str, str]
    data: list[Interactions]


def _bits(model: Any) -> str:
    if isinstance(model, GibbsSAD):
        return fingerprint(model.drawn.user, model.drawn.item, model.drawn.rival, model.drawn.scales)
    arrays = [model.user_factors, model.item_factors, model.rival_factors, model.item_bias]
    return fingerprint(*(None if array is None else np.ascontiguousarray(array) for array in arrays))


def prepare(folder: Path) -> Subject:
    """Fit everything on one thread."""
    with quiet_warnings():
        models = {name: fitted(name) for name in MODELS}
        bits = {name: _bits(make(1).fit(data(), show_progress=False)) for name, (make, data) in FITS.items()}
    data = [
        Interactions.from_csr(clicks(size, size - 6).matrix, items=[f"{name}{number}" for number in range(size - 6)])
        for name, size in (("old ", 24), ("new ", 40))
    ]
    return Subject(models, {name: said(model) for name, model in models.items()}, bits, data)


def trial(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Do one of these things."""
    with quiet_warnings():
        kind = rng.random()
        if kind < 0.4:
            name = list(FITS)[int(rng.integers(len(FITS)))]
            threads = int(rng.integers(2, 9))
            make, data = FITS[name]
            same = _bits(make(threads).fit(data(), show_progress=False)) == subject.bits[name]
            return Outcome("same bits") if same else Outcome("other bits", f"{name} on {threads} threads")
        if kind < 0.7:
            return _asked_while_fitted(subject, rng, folder)
        return _elsewhere(subject, rng, folder)


def _asked_while_fitted(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Ask and save from several threads while the model is fitted to data with other items."""
    old, new = subject.data
    solver = SAD(3, iterations=int(rng.integers(1, 6)), num_threads=int(rng.integers(1, 4)))
    model = solver.fit(old, show_progress=False)
    before = said(model)
    heard: list[str] = []
    saved: list[Path] = []
    done = threading.Event()

    def ask(number: int) -> None:
        while not done.is_set():
            try:
                items = model.recommend(3, N=8)[0]
                if len({str(item)[:3] for item in items}) > 1:
                    heard.append(f"a list of {items}")
                path = folder / f"{number} {len(saved)}"
                model.save(path)
                saved.append(path)
            except Exception as error:
                heard.append(f"{type(error).__name__}: {error}")

    askers = [threading.Thread(target=ask, args=[number]) for number in range(int(rng.integers(1, 5)))]
    for asker in askers:
        asker.start()
    slowly = [lambda *_: time.sleep(0.01)] if rng.random() < 0.5 else []  # others ask during the callback, too
    model.fit(new, show_progress=False, callbacks=slowly)
    done.set()
    for asker in askers:
        asker.join()
    whole_states = {before, said(model)}
    for path in set(saved):
        try:
            if said(SAD.load(path)) not in whole_states:
                heard.append(f"{path.name} is neither the old model nor the new one")
        except Exception as error:
            heard.append(f"{type(error).__name__}: {error}")
    if heard:
        return Outcome("errors and mixtures", "; ".join(sorted(set(heard))[:3]))
    same = _bits(SAD(**model.get_params()).fit(new, show_progress=False)) == _bits(model)
    return Outcome("same bits") if same else Outcome("other bits", "after it was asked while it was fitted")


_ELSEWHERE = """
import sys
from pathlib import Path
from campaigns._subjects import load, said
print(said(load(sys.argv[1], Path(sys.argv[2]))))
"""


def _elsewhere(subject: Subject, rng: Random, folder: Path) -> Outcome:
    """Ask a copy, a fork, several threads, or a new process."""
    name = list(subject.models)[int(rng.integers(len(subject.models)))]
    model, wanted = subject.models[name], subject.answers[name]
    how = ("pickle", "copy", "deepcopy", "joblib", "threads", "fork", "process")[
        int(rng.choice(7, p=[0.16, 0.16, 0.16, 0.16, 0.16, 0.17, 0.03]))
    ]
    replies: list[str] = []
    if how == "pickle":
        replies = [said(pickle.loads(pickle.dumps(model)))]
    elif how in ("copy", "deepcopy"):
        replies = [said(getattr(copy, how)(model))]
    elif how == "joblib":
        import joblib

        joblib.dump(model, folder / "model.joblib")
        replies = [said(joblib.load(folder / "model.joblib", mmap_mode="r" if rng.random() < 0.5 else None))]
    elif how == "threads":
        askers = [threading.Thread(target=lambda: replies.append(said(model))) for _ in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        replies += [""] * (8 - len(replies))
    elif how == "fork":
        in_fork(lambda: (folder / "answer").write_text(said(model)), folder)
        replies = [(folder / "answer").read_text() if (folder / "answer").exists() else ""]
    else:
        model.save(folder / "model")
        run = subprocess.run(
            [sys.executable, "-c", _ELSEWHERE, name, str(folder / "model")], capture_output=True, text=True
        )
        replies = [run.stdout.strip() or run.stderr[-500:]]
    same = set(replies) == {wanted}
    return Outcome("same answers") if same else Outcome("other answers", f"{name} by {how}: {replies[0]}")


CAMPAIGN = Campaign(
    unit="uses at once",
    kept=("same bits", "same answers"),
    broken=("other bits", "other answers", "errors and mixtures"),
    prepare=prepare,
    trial=trial,
    seconds=120,
    memory=8.0,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=200)
