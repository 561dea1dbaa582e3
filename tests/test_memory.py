"""Sizes are estimated before anything is allocated; the error names the setting and the bytes."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from sadrec import SAD, Comparisons, Interactions
from sadrec._core import memory as _memory
from sadrec._core.memory import available, need
from sadrec.cli.ask import write_all
from sadrec.evaluation import EASE, grid_points
from sadrec.models import ModelFileError, settings_for
from sadrec.posterior import GibbsSAD
from tests.rewriting import rewrite


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return Interactions.from_csr(np.where(rng.random((20, 30)) < 0.3, rng.integers(1, 6, (20, 30)), 0))


@pytest.fixture(scope="module")
def games():
    rng = np.random.default_rng(0)
    winner = rng.integers(30, size=300)
    loser = (winner + rng.integers(1, 30, size=300)) % 30
    return Comparisons.from_indices(rng.integers(20, size=300), winner, loser, users=range(20), items=range(30))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"factors": 2_000_000_000, "loss": "pairwise"},
            r"factors=2000000000 takes \d+\.\d GiB: the fit needs .* are free: lower factors",
        ),
        ({"factors": 2_000_000_000}, r"factors=2000000000 takes \d+\.\d TiB: the fit needs .* are free: lower factors"),
        ({"factors": 10**15}, r"factors=1000000000000000 takes .* TiB"),
        (
            {"loss": "pairwise", "negative_candidates": 10**9},
            "negative_candidates must be a whole number, from 1 to 10000, not 1000000000",
        ),
        ({"order_share": 0.999999}, r"order_share=0.999999 asks for 999,999 ordered pairs .* set 0.99 at most, or 1"),
        ({"order_share": 1, "blocks": 100_000}, r"blocks=100000 takes .* TiB"),
    ],
)
def test_absurd_settings_are_refused_before_anything_is_allocated(data, settings, message):
    with pytest.raises(ValueError, match=message):
        SAD(**settings).fit(data, show_progress=False)


@pytest.mark.parametrize(
    "settings", [{"factors": 10**6}, {"factors": 10**10, "solver": "sgd"}, {"blocks": 10**6, "solver": "sgd"}]
)
def test_absurd_settings_for_comparisons_are_refused(games, settings):
    with pytest.raises(ValueError, match=r"(factors|blocks)=.* (GiB|TiB)"):
        SAD(**settings).fit(games, show_progress=False)


def test_the_draws_of_a_posterior_are_refused_before_they_are_made(games):
    for settings in ({"draws": 10**9}, {"chains": 10**7, "draws": 10**3}, {"factors": 10**8}):
        with pytest.raises(ValueError, match=r"the sampler, whose draws take .* needs .* lower draws or chains"):
            GibbsSAD(**settings).fit(games, show_progress=False)


@pytest.fixture
def model():
    return SAD.from_factors(np.ones((50, 2)), np.arange(80.0).reshape(40, 2), np.ones((40, 2)))


def test_answers_that_do_not_fit_are_refused(model, monkeypatch):
    with pytest.raises(ValueError, match=r"N=1000000000000 for 50 users needs .* TiB .* lower N or ask about fewer"):
        model.recommend(model.users, N=10**12)
    assert len(model.recommend(0, N=10**12)[0]) == 40
    assert len(model.similar_items(0, N=10**12)[0]) == 40
    with pytest.raises(ValueError, match=r"a grid of 1,000,000,000,000 points needs"):
        grid_points({str(name): list(range(10)) for name in range(12)})
    monkeypatch.setattr(_memory, "_SMALL", 0)
    with pytest.raises(ValueError, match="EASE with 3 items needs 216 bytes of memory"):
        monkeypatch.setattr(_memory, "available", lambda: 100)
        EASE().fit(np.eye(3), show_progress=False)


def test_recommendations_for_all_are_no_more_than_there_are_items(model, tmp_path):
    write_all(model, tmp_path / "all.parquet", 10**9, "margin", keep_seen=True, titles={}, quiet=True)
    assert len(pl.read_parquet(tmp_path / "all.parquet")) == 50 * 40


def test_files_that_ask_for_much_are_refused(model, tmp_path, data):
    fitted = SAD(factors=2, iterations=1).fit(data, show_progress=False)
    object.__setattr__(fitted.state.settings, "negative_candidates", 10**9)
    fitted.save(tmp_path / "candidates.sad")
    with pytest.raises(ModelFileError, match="negative_candidates must be a whole number, from 1 to 10000"):
        SAD.load(tmp_path / "candidates.sad")


def test_a_file_of_empty_factors_of_endless_length_is_refused(tmp_path):
    SAD.from_factors(np.ones((1, 2)), np.ones((1, 2))).save(tmp_path / "m.sad")

    def empty(arrays, header):
        kept = {name: arrays[name][:0] for name in ("users", "items")}
        names = ("user_factors", "item_factors", "rival_factors")
        arrays.clear()
        arrays |= {name: np.empty((0, 2**40), np.float32) for name in names} | kept

    rewrite(tmp_path / "m.sad", empty, tmp_path / "endless.sad")
    with pytest.raises(ModelFileError):
        SAD.load(tmp_path / "endless.sad").recommend_for([0])


def test_little_is_never_asked_about(monkeypatch):
    monkeypatch.setattr(_memory, "available", lambda: 0)
    need(_memory._SMALL, "a little", "nothing")
    with pytest.raises(ValueError, match=r"much needs 16.0 MiB of memory, and 0 bytes are free: do less"):
        need(_memory._SMALL + 1, "much", "do less")


def test_where_the_system_tells_nothing_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "_read", lambda path: "")
    monkeypatch.setattr(_memory, "_address_space", lambda: None)
    monkeypatch.delattr(os, "sysconf")
    assert available() is None
    need(2**80, "everything", "nothing")


def test_giving_back_is_left_out_where_the_system_cannot(monkeypatch):
    _memory.give_back()
    monkeypatch.setattr(_memory.ctypes, "CDLL", lambda name: object())  # as on macOS
    _memory.give_back()


def test_the_limit_of_a_container_counts(monkeypatch):
    files = {
        "/proc/self/cgroup": "0::/box\n",
        "/sys/fs/cgroup/box/memory.max": "1000\n",
        "/sys/fs/cgroup/box/memory.current": "700\n",
        "/sys/fs/cgroup/box/memory.stat": "anon 400\ninactive_file 200\n",
        "/proc/meminfo": "MemTotal: 99 kB\nMemAvailable: 2 kB\nHugePages_Total: 0\n",
    }
    monkeypatch.setattr(_memory, "_read", lambda path: files.get(str(path), ""))
    monkeypatch.setattr(_memory, "_address_space", lambda: None)
    assert available() == 500
    files["/sys/fs/cgroup/box/memory.max"] = "max\n"
    assert available() == 2048


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is kept to on Linux")
def test_a_fit_under_a_limit_is_refused_in_words():
    code = """
        import resource
        import numpy as np
        from sadrec import SAD
        matrix = np.eye(300)
        SAD(factors=2, iterations=1, num_threads=1).fit(matrix, show_progress=False)
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (size + 2**27, size + 2**27))
        try:
            SAD(factors=200_000, loss="pairwise", iterations=1, num_threads=1).fit(matrix, show_progress=False)
        except ValueError as error:
            print(error)
        SAD(factors=8, iterations=1, num_threads=1).fit(matrix, show_progress=False)
        print("still alive")
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert "factors=200000 takes 686.6 MiB: the fit needs" in out.stdout and "still alive" in out.stdout, out.stderr


def test_an_estimate_of_a_fit_is_near_what_it_takes():
    import tracemalloc

    from sadrec.training.dataset import bytes_needed, training_data

    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(4000 * 1000, size=300_000))
    data = Interactions.from_csr(sp.csr_matrix((np.ones(len(keys), np.float32), (keys // 1000, keys % 1000))))
    # A sample that default rules look at would be the peak here.
    given = {"loss": "pairwise", "regularization": 0.01, "negative_candidates": 4}
    model = SAD(factors=64, iterations=1, num_threads=1, **given)
    estimate = sum(bytes_needed(training_data(data), settings_for(model, data), 1).values())
    model.fit(data, show_progress=False)  # compiles
    tracemalloc.start()
    model.fit(data, show_progress=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < estimate / peak < 3


@pytest.mark.parametrize(("given", "most"), [("number", 7.5), ("interactions", 15.5)])
def test_dislikes_take_few_bytes_an_interaction_and_what_was_seen_after_training(given, most):
    """A mask and a weight of a byte each while it trains; beside data of their own, one matrix of both."""
    import tracemalloc

    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(4000 * 1000, size=400_000))
    ratings = np.where(rng.random(len(keys)) < 0.01, 1.0, 5.0).astype(np.float32)
    data = Interactions.from_csr(sp.csr_matrix((ratings, (keys // 1000, keys % 1000))))
    dislikes = 2.5 if given == "number" else data.split(test=0.01, seed=0)[1]
    settings = {"loss": "pairwise", "regularization": 0.01, "negative_candidates": 1}
    model = SAD(factors=1, iterations=1, num_threads=1, **settings)
    model.fit(data, show_progress=False, dislikes=dislikes)  # compiles
    model = SAD(factors=1, iterations=1, num_threads=1, **settings)
    tracemalloc.start()
    model.fit(data, show_progress=False, dislikes=dislikes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * len(keys)


def test_a_number_no_float_can_hold_is_refused_in_words():
    model = SAD(factors=1, iterations=0).fit(np.eye(30), show_progress=False)
    with pytest.raises(ValueError, match=r"for 30 users needs .* TiB of memory"):
        model.recommend(model.users, N=10**400)
