"""Scores of items by choix, evalica, arena-rank and leaderbot, and the votes that leaderbot ships.

``python arena.py votes FILE`` writes the votes; ``python arena.py scores IN OUT`` fits each package to the games in IN:
``left``, ``right`` and ``outcome`` (1: left won, 0: right won, .5: a tie), and the number of ``items``.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Games = tuple[Any, Any, Any, int]


def choix(games: Games) -> Any:
    """Fit Bradley and Terry's model by iterative spectral ranking, of counts."""
    import choix

    left, right, outcome, items = games
    wins = np.bincount(left * items + right, outcome, items**2) + np.bincount(
        right * items + left, 1 - outcome, items**2
    )
    return choix.ilsr_pairwise_dense(np.asarray(wins, np.float64).reshape(items, items), alpha=0.01)


def evalica(games: Games) -> Any:
    """Fit Bradley and Terry's model to rows."""
    from evalica import Winner, bradley_terry

    left, right, outcome, items = games
    winners = np.array([Winner.Y, Winner.Draw, Winner.X], object)[(2 * outcome).astype(int)].tolist()
    scores = bradley_terry(left.tolist(), right.tolist(), winners).scores
    return np.log(np.maximum(scores.reindex(range(items)).fillna(scores.mean()).to_numpy(), 1e-12))


def arena_rank(games: Games) -> Any:
    """Fit Bradley and Terry's model with intervals, as LMArena does."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    left, right, outcome, items = games
    names = np.array(["model_b", "tie", "model_a"])[(2 * outcome).astype(int)]
    data = PairDataset.from_pandas(pd.DataFrame({"model_a": left, "model_b": right, "winner": names}))
    model = BradleyTerry(n_competitors=len(data.competitors))
    model.compute_ratings_and_cis(data)
    scores = np.zeros(items)
    scores[data.competitors] = np.asarray(model.params["ratings"])
    return scores


def leaderbot(games: Games) -> Any:
    """Fit Davidson's model of ties to counts."""
    from leaderbot.models import Davidson

    left, right, outcome, items = games
    one, other = np.minimum(left, right), np.maximum(left, right)
    kind = np.where(outcome == 0.5, 2, np.where((outcome == 1) == (left == one), 0, 1))
    keys, row = np.unique(one * items + other, return_inverse=True)
    counts = np.bincount(row * 3 + kind, minlength=3 * len(keys)).reshape(-1, 3)
    pairs = np.stack(np.divmod(keys, items), axis=1)
    model = Davidson({"models": [str(item) for item in range(items)], "X": pairs, "Y": counts}, k_cov=None, k_tie=0)
    model.train()
    return np.asarray(model.param[:items])


PACKAGES: dict[str, tuple[str, Callable[[Games], Any]]] = {
    "choix": ("choix", choix),
    "evalica": ("evalica", evalica),
    "arena-rank": ("arena-rank", arena_rank),
    "leaderbot": ("leaderbot", leaderbot),
}


def scores(source: str, target: str) -> None:
    """Fit each package once to small games, so that it is loaded and compiled, and then to the games."""
    held = np.load(source)
    games = held["left"], held["right"], held["outcome"], int(held["items"])
    small = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2]), np.array([1.0, 0.5, 1.0, 0.0]), 3
    answer = {}
    for name, (package, fit) in PACKAGES.items():
        if name == "leaderbot" and games[3] > int(held["most"]):
            continue
        try:
            fit(small)
            start = time.process_time()
            values = [float(value) for value in fit(games)]
            answer[name] = {"version": version(package), "seconds": time.process_time() - start, "scores": values}
        except Exception as error:
            answer[name] = {"version": version(package), "error": f"{type(error).__name__}: {error}"[:300]}
    Path(target).write_text(json.dumps(answer), encoding="utf-8")


def votes(target: str) -> None:
    """Write the votes of the chatbot arena that leaderbot ships, counted."""
    from leaderbot.data import load

    data = load()
    np.savez(target, pairs=np.asarray(data["X"]), counts=np.asarray(data["Y"]), names=np.array(data["models"]))


if __name__ == "__main__":
    if sys.argv[1] == "votes":
        votes(sys.argv[2])
    else:
        scores(sys.argv[2], sys.argv[3])
