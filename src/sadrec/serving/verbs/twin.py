"""Model and twin on the same questions: whether learning T is worth it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import SAD
from sadrec._core.types import Doubles
from sadrec.serving import questions
from sadrec.serving.loaded import VISITOR, Json, Loaded, nearest_bpr
from sadrec.serving.problems import Unanswerable

_PLAYED = 30
"""Best items whose pairs are put to model and twin."""


def worth(loaded: Loaded, question: questions.Worth) -> Json:
    """Compare the answers of the model and of its twin with T = 1, with a verdict whether learning T is worth it."""
    model, user = loaded.person(question)
    twin, twin_user = person_of_twin(loaded, question, model)
    best, _ = model.recommend(user, N=_PLAYED, filter_already_liked_items=False)
    one, other = (best[side] for side in np.triu_indices(len(best), 1))
    ours, theirs = (_margins(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    differ = np.sign(ours) != np.sign(theirs)
    ours_chance, theirs_chance = (_chances(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    first = np.lexsort((-np.abs(ours_chance - theirs_chance), ~differ))[: question.N]
    items = np.array([*loaded.item_ids([pair.item for pair in question.pairs]), *one[first]], model.items.dtype)
    rivals = np.array([*loaded.item_ids([pair.rival for pair in question.pairs]), *other[first]], model.items.dtype)
    share = float(loaded.intransitivity.mean())
    verdict, words = _verdict(loaded, share, float(differ.mean()) if len(differ) else 0.0)
    return {
        "user": loaded.plain(user),
        "twin": kind_of_twin(loaded),
        "share_unexplained": share,
        "user_unexplained": model.intransitivity(user),
        "differ": float(differ.mean()) if len(differ) else 0.0,
        "pairs": len(differ),
        "tested": loaded.tested,
        "verdict": verdict,
        "words": words,
        "questions": _to_both(loaded, (model, user), (twin, twin_user), items, rivals),
    }


def kind_of_twin(loaded: Loaded) -> str:
    """Return the kind of the twin: a fitted model that was given, or the nearest model with T = 1."""
    return "nearest" if loaded.given_twin is None else "fitted"


def person_of_twin(loaded: Loaded, who: questions.Who, model: SAD) -> tuple[SAD, Any]:
    """Return the twin that answers about the same person, and the person's id in it."""
    if who.user is not None:
        return loaded.twin, loaded.user_id(who.user)
    if loaded.given_twin is None:
        return nearest_bpr(model), model.users[0]
    if who.features is not None and (loaded.twin.state.features is None or loaded.twin.state.features.user is None):
        raise Unanswerable("the twin was fitted without user_features: leave features out, or fit it with them")
    return loaded.visitor(loaded.twin, who), VISITOR


def _margins(model: SAD, user: Any, items: Any, rivals: Any) -> Doubles:
    return np.asarray(model.preference(user, items, rivals)) if len(items) else np.empty(0)


def _chances(model: SAD, user: Any, items: Any, rivals: Any) -> Doubles:
    return np.asarray(model.probability(user, items, rivals)) if len(items) else np.empty(0)


def _to_both(
    loaded: Loaded, ours: tuple[SAD, Any], theirs: tuple[SAD, Any], items: NDArray[Any], rivals: NDArray[Any]
) -> list[Json]:
    """Ask the model and its twin the same questions."""
    if not len(items):
        return []
    columns = [
        (model.preference(user, items, rivals), model.probability(user, items, rivals))
        for model, user in (ours, theirs)
    ]
    (x, p), (y, q) = columns
    return [
        {
            "item": item,
            "rival": rival,
            "margin": float(x[row]),
            "probability": float(p[row]),
            "twin_margin": float(y[row]),
            "twin_probability": float(q[row]),
            "differ": bool(np.sign(x[row]) != np.sign(y[row])),
        }
        for row, (item, rival) in enumerate(zip(loaded.entries(items), loaded.entries(rivals), strict=True))
    ]


def _verdict(loaded: Loaded, share: float, differ: float) -> tuple[str, str]:
    """Return the verdict in a sentence: whether learning T is worth it."""
    if loaded.model.state.parameters.rival_factors is None:
        return "no", "This model has T = 1 already: it is a score per item, and has no cycles."
    tested = loaded.tested
    if tested is not None:
        gain, error = tested["difference"], tested["error"]
        figures = (
            f"On {tested['comparisons']:,} comparisons that neither has learnt from, the log loss is "
            f"{tested['log_loss']:.3f} with T learnt and {tested['twin_log_loss']:.3f} with T = 1"
        )
        if gain > 2 * error and gain > 0.005:
            return "yes", f"Yes. {figures}: there are cycles here, and scores miss them."
        return "no", f"No. {figures}: that is no gain worth having. Use BPR, which is smaller and faster."
    figures = (
        f"Scores leave {100 * share:.1f} % of the margins unexplained, and among these best items model "
        f"and twin name different winners for {100 * differ:.1f} % of the pairs."
    )
    if share < 0.01:
        return "no", f"Hardly. {figures} A score per item (BPR) says nearly the same."
    return "unknown", (
        f"It may be. {figures} Only held-out data tells whether that is knowledge or noise: start with --test FILE, or "
        "run sadrec.evaluation.compare_with_bpr(data)."
    )
