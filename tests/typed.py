"""What a user's type checker makes of the package, checked by ``make lint``: mypy reads this file, nobody runs it.

A right script has no error. Each mistake has one, as strict checks refuse a ``type: ignore`` that ignores nothing.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sadrec import BPR, SAD, Comparisons, Interactions, Items
from sadrec.data import Simulation, simulate
from sadrec.evaluation import BPRComparison, Evaluation, compare, compare_with_bpr, evaluate
from sadrec.posterior import GibbsSAD
from sadrec.ranking import Cycle


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
    comparisons: Comparisons = truth.comparisons
    advice: BPRComparison = compare_with_bpr(comparisons)
    posterior: GibbsSAD = GibbsSAD(factors=2).fit(comparisons)
    vectors: NDArray[np.float32] = BPR().fit(comparisons).item_vectors()
    print(advice, vectors.shape, posterior.interval(0, 1, 2), compare({"a": SAD(), "b": BPR()}, comparisons).table())
    return [cycle.named({1: "tea"}) for cycle in SAD().fit(comparisons).cycles(0)]


def mistakes() -> None:
    from sadrec import SADD  # type: ignore[attr-defined]
    from sadrec.data import lod  # type: ignore[attr-defined]

    SAD(factor=8)  # type: ignore[call-arg]
    SAD(factors="8")  # type: ignore[arg-type]
    SAD().fitt(3)  # type: ignore[attr-defined]
    print(SADD, lod)
