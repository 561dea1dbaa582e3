"""How a baseline runs, and what it says when it does not."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sadrec.models import NotFittedError
from studies.baselines import BaselineError, BaselineTimeoutError, make

ROOT = Path(__file__).parents[3]


def test_scores_are_read_from_a_file_that_goes_with_the_baseline(two_groups, light):
    model = make("als", factors=2).fit(two_groups.data)
    file = Path(model.state.scores.filename)
    assert isinstance(model.state.scores, np.memmap)
    assert file.exists()
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "facts.json",
        "log.txt",
        "scores.npy",
        "settings.json",
    ]
    del model
    gc.collect()
    assert not file.parent.exists()


def test_facts_say_what_ran(two_groups, light):
    model = make("svd", factors=2, iterations=1)
    with pytest.raises(NotFittedError):
        len(model.facts)
    facts = model.fit(two_groups.data).facts
    assert facts["versions"]["scikit-surprise"] == "1.1.5"
    assert facts["fit_seconds"] > 0


def test_a_baseline_that_diverges_says_so_in_its_own_words(two_groups, light):
    with pytest.raises(BaselineError, match=r"mf failed: FloatingPointError: .* lower the learning rate \(exit"):
        make("mf", learning_rate=1000.0).fit(two_groups.data)


def test_a_baseline_that_is_too_slow_is_stopped(two_groups, light):
    with pytest.raises(BaselineTimeoutError, match=r"svd ran out of time: it was allowed 0\.5 s"):
        make("svd", iterations=100_000, timeout=0.5).fit(two_groups.data)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs Unix timers")
def test_an_interrupted_fit_leaves_no_process(two_groups, light):
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(Interrupted):
            make("svd", iterations=1_000_000).fit(two_groups.data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    running = subprocess.run(
        ["ps", "-o", "args", "--ppid", str(os.getpid())], check=False, capture_output=True, text=True
    )
    assert "programs.run" not in running.stdout


def test_a_baseline_that_is_not_installed_says_what_to_do(two_groups, tmp_path, monkeypatch):
    monkeypatch.setenv("SADREC_CACHE", str(tmp_path))
    with pytest.raises(BaselineError, match=r"ncf is not installed: .* install ncf` \(about 1700 MB\)"):
        make("ncf").fit(two_groups.data)
    with pytest.raises(BaselineError, match="this Python has no module 'rankfm'"):
        make("fm", where="here").fit(two_groups.data)


def test_a_baseline_runs_inside_a_process_that_has_its_library(two_groups, light, tmp_path):
    """In this process, beside it and in the environment: the same scores."""
    libraries = next((light.parent.parent / "lib").glob("python*/site-packages"))
    np.save(tmp_path / "data.npy", two_groups.data.matrix.toarray())
    program = f"""
import sys, numpy as np
sys.path += [{str(ROOT)!r}, {str(libraries)!r}]
import os
os.environ["PYTHONPATH"] = {str(libraries)!r}
from studies.baselines import make
data = np.load("data.npy")
settings = dict(factors=2, num_threads=1, where="here")
inside = make("als", **settings).fit(data)
np.save("inside.npy", inside.scores(range(len(data))))
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    there = make("als", factors=2, num_threads=1, where="environment").fit(two_groups.data)
    np.testing.assert_allclose(np.load(tmp_path / "inside.npy"), there.scores(two_groups.data.users), atol=1e-5)


def test_programs_import_nothing_of_sadrec():
    """They run where it is not installed."""
    import studies.baselines.programs as programs

    folder = Path(programs.__file__).parent
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    code = (
        f"import sys; sys.path.append({str(folder.parent)!r}); sys.modules['sadrec'] = None; import importlib; "
        f"[importlib.import_module('programs.' + name) for name in {names!r}]"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "floor"),
    [("svd", 0.86), ("mf", 0.84), ("pmf", 0.80), ("fm", 0.92), ("ncf", 0.92), ("vae", 0.88), ("als", 0.90)],
)
def test_quality_on_movielens_100k(name, floor, light, heavy, data_folder):
    from sadrec.data import Interactions
    from sadrec.evaluation import evaluate

    data = Interactions.read(data_folder / "movielens-100k" / "ratings.parquet")
    train, held_out = data.leave_one_out(seed=0)
    model = make(name, **({"iterations": 5} if name in ("svd", "mf", "pmf", "ncf") else {})).fit(train)
    assert evaluate(model, train, held_out)["sampled_auc"] > floor


def test_a_baseline_that_fails_or_is_too_slow_is_a_row_of_the_comparison(two_groups, light):
    from sadrec.evaluation import compare

    models = {
        "popularity": make("popularity"),
        "mf": make("mf", learning_rate=1000.0),
        "svd": make("svd", iterations=1_000_000),
    }
    result = compare(models, two_groups.data, splits=1, budget={"svd": 2.0}, show_progress=False)
    assert {run.model: run.status for run in result.runs} == {
        "popularity": "done",
        "mf": "failed",
        "svd": "out of time",
    }
    assert "lower the learning rate" in result.runs[1].message
