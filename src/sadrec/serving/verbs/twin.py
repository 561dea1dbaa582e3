"""Model and twin on the same questions: whether learning T is worth it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sadrec import SAD
from sadrec._types import Doubles
from sadrec.serving import questions
from sadrec.serving.problems import Unanswerable
from sadrec.serving.served import VISITOR, Served, nearest_bpr
from sadrec.serving.verbs.person import Answer, known_items, known_user, person, said_by

_PLAYED = 30
"""Best items whose pairs are put to model and twin."""


def worth(served: Served, asked: questions.Worth) -> Answer:
    """Put the same questions to the model and to its twin with T = 1, and say whether learning T is worth it."""
    model, user = person(served, asked)
    twin, twin_user = person_of_twin(served, asked, model)
    best, _ = model.recommend(user, N=_PLAYED, filter_already_liked_items=False)
    one, other = (best[side] for side in np.triu_indices(len(best), 1))
    ours, theirs = (_margins(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    differ = np.sign(ours) != np.sign(theirs)
    ours_chance, theirs_chance = (_chances(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    first = np.lexsort((-np.abs(ours_chance - theirs_chance), ~differ))[: asked.N]
    items = np.array([*known_items(served, [pair.item for pair in asked.pairs]), *one[first]], model.items.dtype)
    rivals = np.array([*known_items(served, [pair.rival for pair in asked.pairs]), *other[first]], model.items.dtype)
    share = float(served.intransitivity.mean())
    verdict, words = _verdict(served, share, float(differ.mean()) if len(differ) else 0.0)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "twin": kind_of_twin(served),
        "share_unexplained": share,
        "user_unexplained": model.intransitivity(user),
        "differ": float(differ.mean()) if len(differ) else 0.0,
        "pairs": len(differ),
        "tested": served.tested,
        "verdict": verdict,
        "words": words,
        "questions": _to_both(served, (model, user), (twin, twin_user), items, rivals),
    }


def kind_of_twin(served: Served) -> str:
    """Tell whether the twin was fitted and given, or is the nearest model with T = 1."""
    return "nearest" if served.given_twin is None else "fitted"


def person_of_twin(served: Served, who: questions.Who, model: SAD) -> tuple[SAD, Any]:
    """Return the twin to ask about the same person, and the id by which it knows them."""
    if who.user is not None:
        return served.twin, known_user(served, who.user)
    if served.given_twin is None:
        return nearest_bpr(model), model.users[0]
    if who.features is not None and (served.twin.state.features is None or served.twin.state.features.user is None):
        raise Unanswerable("the twin was fitted without user_features: leave features out, or fit it with them")
    return served.twin.visitor(*said_by(served, who), features=who.features, name=VISITOR), VISITOR


def _margins(model: SAD, user: Any, items: Any, rivals: Any) -> Doubles:
    return np.asarray(model.preference(user, items, rivals)) if len(items) else np.empty(0)


def _chances(model: SAD, user: Any, items: Any, rivals: Any) -> Doubles:
    return np.asarray(model.probability(user, items, rivals)) if len(items) else np.empty(0)


def _to_both(
    served: Served, ours: tuple[SAD, Any], theirs: tuple[SAD, Any], items: NDArray[Any], rivals: NDArray[Any]
) -> list[dict[str, Any]]:
    """Put questions to the model and to its twin."""
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
        for row, (item, rival) in enumerate(zip(served.entries(items), served.entries(rivals), strict=True))
    ]


def _verdict(served: Served, share: float, differ: float) -> tuple[str, str]:
    """Say in plain words whether learning T is worth it."""
    if served.model.state.parameters.rival_factors is None:
        return "no", "This model has T = 1 already: it is a score per item, and no taste in it runs in a cycle."
    tested = served.tested
    if tested is not None:
        gain, error = tested["difference"], tested["error"]
        told = (
            f"On {tested['comparisons']:,} comparisons that neither has learnt from, the log loss is "
            f"{tested['log_loss']:.3f} with T learnt and {tested['twin_log_loss']:.3f} with T = 1"
        )
        if gain > 2 * error and gain > 0.005:
            return "yes", f"Yes. {told}: taste runs in cycles here, and scores miss them."
        return "no", f"No. {told}: that is no gain worth having. Use BPR, which is smaller and faster."
    told = (
        f"Scores leave {100 * share:.1f} % of the users' preferences unexplained, and among these best items model "
        f"and twin name different winners for {100 * differ:.1f} % of the pairs."
    )
    if share < 0.01:
        return "no", f"Hardly. {told} A score per item (BPR) says nearly the same."
    return "unknown", (
        f"It may be. {told} Whether that is knowledge or noise only held-out data tells: start with --test FILE, or "
        "run sadrec.evaluation.compare_with_bpr(data)."
    )
