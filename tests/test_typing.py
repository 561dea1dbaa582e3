"""What a user's type checker makes of the package: no complaint about a right script, one about each mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
SOURCE = Path(__file__).parents[1] / "src"
SCRIPT = """
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sadrec import BPR, SAD, Comparisons, Interactions, Items
from sadrec.data import Simulation, simulate
from sadrec.evaluation import BPRComparison, Evaluation, compare, compare_with_bpr, evaluate
from sadrec.posterior import GibbsSAD
from sadrec.ranking.cycles import Cycle


def lists(path: Path) -> dict[str, list[str]]:
    data: Interactions = Interactions.read(path, item="film")
    train, held_out = data.leave_one_out(seed=0)
    model: SAD = SAD(factors=8, iterations=5).fit(train, show_progress=False)
    result: Evaluation = evaluate(model, train, held_out)
    share: float = result["m1"]
    ids, scores = model.recommend("ann", N=3)
    model.save(path.with_suffix(".sad"))
    print(share, scores, SAD.load("m.sad").similar_items(ids[0]))
    titles: list[str] = Items.read("films.csv").titles(ids).tolist()
    return {"ann": titles}


def cycles() -> list[Cycle]:
    truth: Simulation = simulate("sim2", n=5)
    said: Comparisons = truth.comparisons
    advice: BPRComparison = compare_with_bpr(said)
    posterior: GibbsSAD = GibbsSAD(factors=2).fit(said)
    vectors: NDArray[np.float32] = BPR().fit(said).item_vectors()
    print(advice, vectors.shape, posterior.interval(0, 1, 2), compare({"a": SAD(), "b": BPR()}, said).table())
    return [cycle.named({1: "tea"}) for cycle in SAD().fit(said).cycles(0)]
"""
MISTAKES = """
from sadrec import SAD, SADD
from sadrec.data import lod

SAD(factor=8)
SAD(factors="8")
SAD().fitt(3)
"""


def test_a_script_passes_strict_checks_and_mistakes_do_not(tmp_path):
    (tmp_path / "right.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(MISTAKES)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--cache-dir=c"]
    done = subprocess.run(
        [*command, "right.py", "wrong.py"], cwd=tmp_path, env={"MYPYPATH": str(SOURCE)}, capture_output=True, text=True
    )
    assert "right.py" not in done.stdout
    for said in ('no attribute "SADD"', 'no attribute "lod"', 'argument "factor"', 'type "str"', 'attribute "fitt"'):
        assert said in done.stdout
