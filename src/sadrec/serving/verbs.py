"""From a question to an answer: one function per verb, each of what is served and of a typed question."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import sadrec
from sadrec import SAD, Comparisons
from sadrec._types import Doubles
from sadrec.data.ids import UnknownIdError
from sadrec.ranking.cycles import Cycle, cycle_through
from sadrec.ranking.pairs import contributions
from sadrec.ranking.questions import Contradiction, cycle_probability
from sadrec.ranking.rank import SlateMethod, rank_tournament
from sadrec.ranking.uncertainty import Uncertainty, VisitorUncertainty
from sadrec.serving import interview, schemas
from sadrec.serving.catalogue import folded
from sadrec.serving.newcomers import cold, known_features, with_new_items
from sadrec.serving.problems import NothingSaidError, Unanswerable, UnknownUserError, answered
from sadrec.serving.served import EVERYBODY, VISITOR, Served
from sadrec.serving.settings import MOST_PLAYERS, MOST_USERS

Answer = dict[str, Any]

_ASKED = 60
"""Items among which the next question is looked for."""
_PLAYED = 30
"""Best items whose pairs are put to model and twin."""
_COLUMNS = 20
"""Columns of features that an explanation names, at most."""
_NUMBERS = 1 << 23
"""How many draws of scores are held at a time."""
_SLATE: tuple[SlateMethod, ...] = ("margin", "wins", "markov", "nash")


def describe(served: Served) -> Answer:
    """Tell what is served."""
    model = served.model
    settings = model.settings
    return {
        "model": served.digest,
        "class_name": type(model).__name__,
        "users": len(model.users),
        "items": len(model.items),
        "factors": model.parameters.n_factors,
        "rivals": model.parameters.rival_factors is not None,
        "knows_how_sure": model._fitted.uncertainty is not None,
        "posterior": served.posterior is not None,
        "twin": _twin(served),
        "titles": served.items.has_titles,
        "pictures": served.items.has_pictures,
        "log": served.log,
        "user_example": served.plain(model.users[0]),
        "item_example": served.items.ids[0],
        "user_features": known_features(model.features.user if model.features else None),
        "item_features": known_features(model.features.item if model.features else None),
        "settings": None if settings is None else settings.as_dict(),
        "version": sadrec.__version__,
    }


# -- about whom -------------------------------------------------------------------------------------------------------


def person(served: Served, who: schemas.Who) -> tuple[SAD, Any]:
    """Return the model to ask, and the id by which it knows the person."""
    if who.user is not None:
        return served.model, known_user(served, who.user)
    for name, said in (("likes", who.likes), ("comparisons", who.comparisons), ("features", who.features)):
        if said is not None and not said:
            raise NothingSaidError(
                f"{name} is empty: nothing is known of this visitor. Leave it out to ask about the average user; "
                "/v1/recommend also takes fallback=popular"
            )
    if who.likes is None and who.comparisons is None and who.features is None:
        return served.everybody, EVERYBODY
    said = _said(served, who)
    if who.features is None:
        return answered(lambda: served.model.visitor(said, VISITOR)), VISITOR
    refusals = ValueError, TypeError  # also a value of another kind than the model knows
    return answered(lambda: served.model.visitor(said, VISITOR, features=who.features), refusals), VISITOR


def _said(served: Served, who: schemas.Who) -> Any:
    """Return what a visitor likes or said; None if neither is given."""
    if who.likes is not None:
        return served.item_ids(who.likes)
    return None if who.comparisons is None else stated(served, who.comparisons)


def known_user(served: Served, given: Any) -> Any:
    """Return a user's id as the model has it, or say what to do about an unknown one."""
    try:
        user = served.user_id(given)
        served.model.user_ids.positions(user)
    except UnknownIdError as error:
        raise UnknownUserError(
            f"{error}; for somebody new, POST likes or comparisons, and /v1/recommend also takes fallback=popular"
        ) from None
    return user


def stated(served: Served, comparisons: list[schemas.Comparison]) -> Comparisons:
    """Return what a visitor said as comparisons."""
    ids = served.model.item_ids
    winners, losers = (
        ids.positions(served.item_ids([getattr(one, side) for one in comparisons])) for side in ("winner", "loser")
    )
    if (same := winners == losers).any():
        item = served.items.ids[int(winners[same][0])]
        raise Unanswerable(f"item {item!r} is compared with itself: give two different items")
    # By rows of the items that occur, which are few.
    some, rows = np.unique(np.concatenate([winners, losers]), return_inverse=True)
    winner, loser = np.split(rows, 2)
    zeros = np.zeros(len(winner), np.int32)
    return Comparisons.from_indices(zeros, winner, loser, users=[VISITOR], items=ids.array[some])


def _distinct(ids: list[Any]) -> list[Any]:
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise Unanswerable(f"item {twice!r} is given twice: give each item once")
    return ids


def _known_items(served: Served, given: list[Any]) -> list[Any]:
    """Return items' ids as the model has them, refusing unknown ones."""
    ids = served.item_ids(given)
    if ids:
        served.model.item_ids.positions(ids)
    return ids


def _scored(served: Served, ids: Any, scores: Any) -> list[dict[str, Any]]:
    return [{**entry, "score": float(score)} for entry, score in zip(served.entries(ids), scores, strict=True)]


# -- what to show -----------------------------------------------------------------------------------------------------


@with_new_items
def recommend(served: Served, asked: schemas.Recommend) -> Answer:
    """Return the best items."""
    fallback = None
    try:
        model, user = person(served, asked)
    except (UnknownUserError, NothingSaidError):
        if asked.fallback != "popular":
            raise
        model, user, fallback = served.everybody, EVERYBODY, "popular"
    if asked.items is not None and asked.exclude:
        raise Unanswerable("give items (the only ones to consider) or exclude (to leave out), not both")
    allowed = None if asked.items is None else _known_items(served, asked.items)
    left_out = _known_items(served, asked.exclude) or None
    ids, scores = model.recommend(
        user,
        N=asked.N,
        filter_already_liked_items=not asked.keep_seen,
        filter_items=left_out,
        items=allowed,
        method=asked.method,
        candidates=max(asked.N, asked.candidates) if asked.method == "margin" else asked.candidates,
    )
    listed = _scored(served, ids, scores)
    if asked.intervals and asked.method == "margin":
        _add_intervals(served, model, user, ids, listed)
    return {
        "model": served.digest,
        "user": served.plain(asked.user if fallback and asked.user is not None else user),
        "method": asked.method,
        "items": listed,
        "fallback": fallback,
    }


def _add_intervals(served: Served, model: SAD, user: Any, ids: Any, listed: list[dict[str, Any]]) -> None:
    """Say how sure scores are: by the posterior, or by what is known of the person's vector."""
    from sadrec.posterior.gibbs import LOGIT_PER_PROBIT

    if not len(ids):
        return
    posterior = served.posterior
    if posterior is not None and model is served.model and user in posterior.user_ids:
        rows, row = posterior.item_ids.positions(ids), int(posterior.user_ids.positions(user))
        every = np.arange(len(posterior.item_ids))
        draws = posterior.drawn.at_most(max(1, min(500, _NUMBERS // len(every))))
        scores = LOGIT_PER_PROBIT * draws.scores(row, every)[:, rows]
        low, high = np.quantile(scores, (0.05, 0.95), axis=0)
        for entry, one, two, spread in zip(listed, low, high, scores.std(axis=0), strict=True):
            entry |= {"interval": [float(one), float(two)], "deviation": float(spread)}
        return
    covariance = _covariance(model, user)
    if covariance is None:
        return
    vectors = model._fitted.index.vectors[model.item_ids.positions(ids), : len(covariance)].astype(np.float64)
    spread = np.sqrt(np.maximum(np.einsum("ih,ih->i", vectors @ covariance, vectors), 0.0))
    for entry, one in zip(listed, spread, strict=True):
        centre = entry["score"]
        entry |= {"deviation": float(one), "interval": [centre - 1.645 * float(one), centre + 1.645 * float(one)]}


def _covariance(model: SAD, user: Any) -> Doubles | None:
    """Return how uncertain a person's vector is, where that is known."""
    known = model._fitted.uncertainty
    if isinstance(known, VisitorUncertainty):
        return known.covariance
    if isinstance(known, Uncertainty):
        return known.user_covariance[model.user_ids.positions(user), 1:, 1:].astype(np.float64)
    return None


@with_new_items
def groups(served: Served, asked: schemas.Groups) -> Answer:
    """Return slates on which items that form a cycle are shown together."""
    model, user = person(served, asked)
    most, least = min(asked.N, MOST_PLAYERS), asked.minimum
    shown = model.recommend_groups(user, most, candidates=asked.candidates, largest=asked.largest, minimum=least)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "groups": [
            {"items": served.entries(group.items), "wins": group.wins, "strength": group.strength} for group in shown
        ],
    }


# -- one item against another -----------------------------------------------------------------------------------------


@with_new_items
def prefer(served: Served, asked: schemas.Prefer) -> Answer:
    """Tell which of two items is preferred, for each pair, and how surely."""
    model, user = person(served, asked)
    items = np.array(_known_items(served, [pair.item for pair in asked.pairs]))
    rivals = np.array(_known_items(served, [pair.rival for pair in asked.pairs]))
    margins, chances = model.preference(user, items, rivals), model.probability(user, items, rivals)
    nothing: list[Any] = [None] * len(items)
    deviations, intervals = nothing, nothing
    posterior = served.posterior
    if posterior is not None and model is served.model and user in posterior.user_ids:
        from sadrec.posterior.gibbs import LOGIT_PER_PROBIT

        draws = LOGIT_PER_PROBIT * posterior.preference(user, items, rivals)
        tail = (1 - asked.level) / 2
        intervals = np.quantile(draws, (tail, 1 - tail), axis=0).T.tolist()
        deviations, margins = draws.std(axis=0).tolist(), draws.mean(axis=0)
        chances = posterior.probability(user, items, rivals)
    elif model._fitted.uncertainty is not None:
        from scipy.special import ndtri

        deviations = model.deviation(user, items, rivals).tolist()
        reach = float(ndtri((1 + asked.level) / 2))
        intervals = [[x - reach * d, x + reach * d] for x, d in zip(margins.tolist(), deviations, strict=True)]
    columns = (served.plain(items), served.plain(rivals), margins.tolist(), chances.tolist(), deviations, intervals)
    names = ("item", "rival", "margin", "probability", "deviation", "interval")
    return {
        "model": served.digest,
        "user": served.plain(user),
        "preferences": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
    }


@with_new_items
def margins(served: Served, asked: schemas.Margins) -> Answer:
    """Return the margins of all of some items over all of some rivals."""
    model, user = person(served, asked)
    items, rivals = _known_items(served, asked.items), _known_items(served, asked.rivals)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "items": _shown(served, items),
        "rivals": _shown(served, rivals),
        "margins": model.margins(user, items, rivals).astype(np.float64).tolist(),
    }


def _shown(served: Served, ids: Any) -> list[Any]:
    """Return ids as JSON holds them."""
    return [served.items.ids[place] for place in served.model.item_ids.positions(ids).tolist()] if len(ids) else []


@with_new_items
def rank(served: Served, asked: schemas.Rank) -> Answer:
    """Put items in an order."""
    model, user = person(served, asked)
    items = _distinct(_known_items(served, asked.items))
    order = answered(lambda: model.rank(user, items, asked.method))
    listed = _scored(served, order.items, order.scores)
    return {"model": served.digest, "user": served.plain(user), "method": asked.method, "items": listed}


@with_new_items
def explain(served: Served, asked: schemas.Explain) -> Answer:
    """Say why an item rather than a rival."""
    model, user = person(served, asked)
    item, rival = _known_items(served, [asked.item, asked.rival])
    reason = answered(lambda: model.explain(user, item, rival))
    votes = [
        [
            {**entry, "influence": value}
            for entry, (_, value) in zip(served.entries([i for i, _ in side]), side, strict=True)
        ]
        for side in (reason.supporters(), reason.opponents())
    ]
    return {
        "model": served.digest,
        "user": served.plain(user),
        "item": served.entry(item)["item"],
        "rival": served.entry(rival)["item"],
        "margin": reason.margin,
        "probability": model.probability(user, item, rival),
        "contributions": reason.contributions.tolist(),
        "bias": reason.bias,
        "factors": _factors(reason.contributions, reason.has_bias, 5),
        "for_item": votes[0],
        "for_rival": votes[1],
        "by_features": reason.by_features,
        "columns": [{"column": name, "contribution": value} for name, value in reason.columns[:_COLUMNS]],
    }


def _factors(parts: Doubles, has_bias: bool, most: int) -> list[dict[str, Any]]:
    """Return the factors that contribute most to a margin; None is the bias."""
    total = float(np.abs(parts).sum()) or 1.0
    last = len(parts) - 1 if has_bias else -1
    return [
        {"factor": None if h == last else h, "contribution": float(parts[h]), "share": float(parts[h]) / total}
        for h in np.argsort(-np.abs(parts), kind="stable")[:most].tolist()
    ]


# -- cycles -----------------------------------------------------------------------------------------------------------


@with_new_items
def cycles(served: Served, asked: schemas.Cycles) -> Answer:
    """Find cycles: among a person's best items, given ones, or around an item."""
    model, user = person(served, asked)
    among: Any = None
    around = None
    if asked.items is not None:
        among = _distinct(_known_items(served, asked.items))
    elif asked.item is not None:
        (around,) = _known_items(served, [asked.item])
        among = served.model.similar_items(around, min(asked.N, len(served.items.ids)))[0]
        among = list(dict.fromkeys([*among.tolist(), around])) if among.dtype.kind != "M" else among
    found = model.cycles(user, asked.N, items=among, minimum=asked.minimum)
    if around is not None:
        through = cycle_through(model.tournament(user, among), around)
        found = [] if through is None or through.strength <= asked.minimum else [through]
    triads = model.cyclic_triads(user, asked.N, items=among, strongest=0)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "among": min(asked.N, len(served.items.ids)) if among is None else len(among),
        "intransitivity": model.intransitivity(user),
        "cyclic_triads": triads.count,
        "triads": triads.total,
        "cycles": [_cycle(served, model, user, cycle, asked.factors) for cycle in found[: asked.most]],
    }


def _cycle(served: Served, model: SAD, user: Any, cycle: Cycle, factors: int) -> dict[str, Any]:
    """Return a cycle with what carries each of its steps."""
    known = model._fitted
    path = known.item_ids.positions(cycle.path)
    after = np.roll(path, -1)
    parts = contributions(known.parameters, known.user(user), path, after)
    has_bias = known.parameters.item_bias is not None
    chances = model.probability(user, cycle.path, np.roll(cycle.path, -1))
    weakest = int(np.lexsort((cycle.margins, chances))[0])
    ids = served.items.ids
    covariance = _covariance(model, user)
    vector = known.parameters.user_factors[known.user(user)].astype(np.float64)
    return {
        "members": _shown(served, cycle.members),
        "path": served.entries(cycle.path),
        "strength": cycle.strength,
        "steps": [
            {
                "item": ids[path[step]],
                "rival": ids[after[step]],
                "margin": float(cycle.margins[step]),
                "probability": float(chances[step]),
                "weakest": step == weakest,
                "factors": _factors(parts[step], has_bias, factors),
            }
            for step in range(len(path))
        ],
        "probability": None if covariance is None else cycle_probability(known.parameters, vector, covariance, path),
    }


@with_new_items
def slate(served: Served, asked: schemas.Slate) -> Answer:
    """Tell who wins among a few items by four methods, and whose presence changes that."""
    model, user = person(served, asked)
    items = _distinct(_known_items(served, asked.items))
    if asked.others is None:
        best, _ = model.recommend(user, N=len(items) + 10, filter_already_liked_items=False)
        others = [one for one in best.tolist() if one not in items][:10] if best.dtype.kind != "M" else []
    else:
        others = [one for one in dict.fromkeys(_known_items(served, asked.others)) if one not in items]
    game = model.tournament(user, items)
    winner = game.condorcet_winner()
    rankings = [rank_tournament(game, method) for method in _SLATE]
    return {
        "model": served.digest,
        "user": served.plain(user),
        "items": served.entries(items),
        "margins": game.margins.tolist(),
        "probabilities": _pair_chances(model, user, game.items),
        "rankings": [
            {
                "method": order.method,
                "winner": served.plain(order.items[0]),
                "items": served.plain(order.items),
                "scores": order.scores.tolist(),
            }
            for order in rankings
        ],
        "condorcet_winner": None if winner is None else served.plain(winner),
        "smith_set": served.plain(game.smith_set()),
        "spoilers": [
            {
                "method": method,
                "item": served.entry(one.item),
                "on_slate": one.item in items,
                "winner_without": one.winner_without,
                "winner_with": one.winner_with,
            }
            for method in _SLATE
            for one in model.spoilers(user, items, others, method)
        ],
    }


def _pair_chances(model: SAD, user: Any, items: NDArray[Any]) -> list[list[float]]:
    """Return the probabilities that each of some items is preferred to each other."""
    one, other = np.meshgrid(items, items, indexing="ij")
    chances: list[list[float]] = model.probability(user, one, other).tolist()
    return chances


def nemesis(served: Served, asked: schemas.NemesisQuery) -> Answer:
    """Find what beats an item head to head, and for what share of the users."""
    (item,) = _known_items(served, [asked.item])
    users = served.model.users
    if len(users) > MOST_USERS:  # evenly over all
        users = users[np.linspace(0, len(users) - 1, MOST_USERS).astype(np.int64)]
    found = served.model.nemeses(item, asked.N, users=users)
    places = served.model.item_ids.positions(found.items).tolist() if len(found) else []
    return {
        "model": served.digest,
        **served.entry(item),
        "popularity": float(served.popularity[served.model.item_ids.positions(item)]),
        "place": int(served.popular_place[served.model.item_ids.positions(item)]),
        "users": found.users,
        "nemeses": [
            {
                **served.items.entries[place],
                "share": float(share),
                "margin": float(margin),
                "popularity": float(served.popularity[place]),
                "place": int(served.popular_place[place]),
            }
            for place, share, margin in zip(places, found.shares, found.margins, strict=True)
        ],
    }


# -- what to ask ------------------------------------------------------------------------------------------------------


def ask(served: Served, asked: schemas.Ask) -> Answer:
    """Return the questions whose answers are expected to tell the most."""
    model, user = person(served, asked)
    items = _to_ask(served, model, user, asked.items)
    posterior = served.posterior
    source = "fit" if model is served.model else "visitor"
    if posterior is not None and model is served.model and user in posterior.user_ids:
        source = "posterior"
        questions = posterior.ask_next(user, items, N=asked.N, most_draws=200)
    elif model._fitted.uncertainty is None:
        raise Unanswerable(
            "the model does not know how sure it is of its users: start the service with --posterior, or POST what "
            "the person likes, or comparisons, in place of user"
        )
    else:
        questions = answered(lambda: model.ask_next(user, items, asked.N))
    return {
        "model": served.digest,
        "user": served.plain(user),
        "source": source,
        "questions": _questions(served, questions),
    }


def _to_ask(served: Served, model: SAD, user: Any, given: list[Any] | None) -> list[Any]:
    """Return the items to choose a question from: those given, or half the person's best and half popular ones."""
    if given is not None:
        items = list(dict.fromkeys(_known_items(served, given)))
        if len(items) < 2:
            raise Unanswerable(f"a question needs two items, and {len(items)} are given")
        return items
    best, _ = model.recommend(user, N=_ASKED // 2, filter_already_liked_items=False)
    popular = served.model.items[served.by_popularity[:_ASKED]]
    both = np.concatenate([best, popular[~np.isin(popular, best)]])
    return list(both[:_ASKED])


def _questions(served: Served, questions: Any) -> list[dict[str, Any]]:
    return [
        {
            "item": served.entry(row["item"]),
            "rival": served.entry(row["rival"]),
            "bits": row["bits"],
            "probability": row["probability"],
        }
        for row in questions.iter_rows(named=True)
    ]


def visitor(served: Served, asked: schemas.Visitor) -> Answer:
    """Tell all about a visitor at once."""
    model, user = person(served, asked)
    ids, scores = model.recommend(user, N=asked.N)
    listed = _scored(served, ids, scores)
    _add_intervals(served, model, user, ids, listed)
    if model is not served.model:
        spread = interview.places(model, ids)
        rows = zip(listed, spread["lower"], spread["upper"], spread["first"], strict=True)
        for entry, lower, upper, first in rows:
            entry |= {"place_lower": lower, "place_upper": upper, "first": first}
    answers: list[dict[str, Any]] = []
    found: list[Contradiction] = []
    said = None
    if asked.comparisons:
        said = stated(served, asked.comparisons)
        sides = said.items[said.winner_index], said.items[said.loser_index]
        columns = (
            *(_shown(served, side) for side in sides),
            model.preference(user, *sides),
            model.probability(user, *sides),
        )
        names = ("winner", "loser", "margin", "probability")
        answers = [dict(zip(names, map(served.plain, row), strict=True)) for row in zip(*columns, strict=True)]
        found = served.model.contradictions(said)
    question = None
    if len(served.items.ids) > 1 and model._fitted.uncertainty is not None:
        next_one = interview.next_question(model, user, _to_ask(served, model, user, asked.items), said, found)
        if next_one is not None:
            question = {
                "item": served.entry(next_one.item),
                "rival": served.entry(next_one.rival),
                "bits": next_one.bits,
                "probability": next_one.probability,
                "reason": next_one.reason,
            }
    found_cycles = model.cycles(user, min(50, len(served.items.ids)))
    return {
        "model": served.digest,
        "answers": len(asked.comparisons or asked.likes or []),
        "items": listed,
        "sure": _sureness(model, user, ids),
        "question": question,
        "stated": answers,
        "contradictions": [
            {
                "path": served.entries(one.path),
                "probabilities": one.probabilities.tolist(),
                "probability": one.probability,
                "verdict": one.verdict,
                "ask_again": served.entries(list(one.ask_again)),
            }
            for one in found
        ],
        "intransitivity": model.intransitivity(user),
        "strongest_cycle": _cycle(served, model, user, found_cycles[0], 3) if found_cycles else None,
    }


def _sureness(model: SAD, user: Any, ids: Any) -> float:
    """Return the mean probability that an item of a list is preferred to one further down."""
    if len(ids) < 2:
        return 1.0
    one, other = np.triu_indices(len(ids), 1)
    return float(np.mean(model.probability(user, ids[one], ids[other])))


# -- what is alike, what there is -------------------------------------------------------------------------------------


def similar(served: Served, asked: schemas.Similar) -> Answer:
    """Return what is alike to an item, or who to a user."""
    if (asked.item is None) == (asked.user is None):
        raise Unanswerable("give the id of an item, or that of a user")
    if asked.item is not None:
        kind, (given,) = "item", _known_items(served, [asked.item])
        ids, cosines = served.model.similar_items(given, min(asked.N, len(served.items.ids)))
        named = [{"title": entry["title"], "picture": entry["picture"]} for entry in served.entries(ids)]
    else:
        kind, given = "user", known_user(served, asked.user)
        ids, cosines = served.model.similar_users(given, min(asked.N, len(served.model.users)))
        named = [{} for _ in ids]
    rows = zip(served.plain(ids), named, cosines.tolist(), strict=True)
    shown = served.entry(given)["item"] if kind == "item" else served.plain(given)
    neighbours = [{"id": one, **more, "cosine": cosine} for one, more, cosine in rows]
    return {"model": served.digest, "of": kind, "id": shown, "neighbours": neighbours}


def worth(served: Served, asked: schemas.Worth) -> Answer:
    """Put the same questions to the model and to its twin with T = 1, and say whether learning T is worth it."""
    model, user = person(served, asked)
    twin, twin_user = person_of_twin(served, asked, model)
    best, _ = model.recommend(user, N=_PLAYED, filter_already_liked_items=False)
    one, other = (best[side] for side in np.triu_indices(len(best), 1))
    ours, theirs = (_margins(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    differ = np.sign(ours) != np.sign(theirs)
    ours_chance, theirs_chance = (_chances(who, name, one, other) for who, name in ((model, user), (twin, twin_user)))
    first = np.lexsort((-np.abs(ours_chance - theirs_chance), ~differ))[: asked.N]
    items = np.array([*_known_items(served, [pair.item for pair in asked.pairs]), *one[first]], model.items.dtype)
    rivals = np.array([*_known_items(served, [pair.rival for pair in asked.pairs]), *other[first]], model.items.dtype)
    share = float(served.intransitivity.mean())
    verdict, words = _verdict(served, share, float(differ.mean()) if len(differ) else 0.0)
    return {
        "model": served.digest,
        "user": served.plain(user),
        "twin": _twin(served),
        "share_unexplained": share,
        "user_unexplained": model.intransitivity(user),
        "differ": float(differ.mean()) if len(differ) else 0.0,
        "pairs": len(differ),
        "tested": served.tested,
        "verdict": verdict,
        "words": words,
        "questions": _to_both(served, (model, user), (twin, twin_user), items, rivals),
    }


def _twin(served: Served) -> str:
    return "nearest" if served.given_twin is None else "fitted"


def person_of_twin(served: Served, who: schemas.Who, model: SAD) -> tuple[SAD, Any]:
    """Return the twin to ask about the same person, and the id by which it knows them."""
    if who.user is not None:
        return served.twin, known_user(served, who.user)
    if served.given_twin is None:
        return model.nearest_bpr(), model.users[0]
    if who.features is not None and (served.twin.features is None or served.twin.features.user is None):
        raise Unanswerable("the twin was fitted without user_features: leave features out, or fit it with them")
    return served.twin.visitor(_said(served, who), VISITOR, features=who.features), VISITOR


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
    if served.model.parameters.rival_factors is None:
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


def search(served: Served, asked: schemas.SearchQuery) -> Answer:
    """Find items by title or id, popular ones first."""
    total, places = served.items.search(asked.query, served.by_popularity, asked.N)
    return {"model": served.digest, "total": total, "items": [served.items.entries[place] for place in places]}


def item(served: Served, given: str) -> Answer:
    """Return one item."""
    (one,) = _known_items(served, [given])
    place = served.model.item_ids.positions(one)
    known = served.model.features
    return {
        "model": served.digest,
        **served.entry(one),
        "popularity": float(served.popularity[place]),
        "cold": cold(known.item if known else None, place),
    }


def users(served: Served, asked: schemas.UsersQuery) -> Answer:
    """Return some users."""
    ids = served.model.users
    order = np.arange(len(ids))
    if asked.order == "intransitivity":
        order = np.argsort(-served.intransitivity, kind="stable")
    wanted = folded(asked.query.strip())
    if wanted:
        fits = np.array([wanted in folded(text) for text in ids.astype(str).tolist()])
        order = order[fits[order]]
    known = served.model.features
    return {
        "model": served.digest,
        "total": len(order),
        "users": [
            {
                "user": served.plain(ids[row]),
                "intransitivity": float(served.intransitivity[row]),
                "cold": cold(known.user if known else None, row),
            }
            for row in order[: asked.N].tolist()
        ],
    }


def popular(served: Served, asked: schemas.PopularQuery) -> Answer:
    """Return what is popular by margin, over all users."""
    ids, scores = served.model.recommend_popular(N=asked.N)
    return {
        "model": served.digest,
        "user": EVERYBODY,
        "method": "margin",
        "items": _scored(served, ids, scores),
        "fallback": "popular",
    }


def warm_up(served: Served) -> None:
    """Ask each verb once: what is kept gets computed, and the kernels that questions run are compiled or loaded."""
    some = served.items.ids[: min(3, len(served.items.ids))]
    who = {"user": served.plain(served.model.users[0])}
    for _ in range(20):
        served.recommend(0, 10)
    recommend(served, schemas.Recommend.model_validate({**who, "method": "wins", "intervals": True}))
    if len(some) > 1:
        recommend(served, schemas.Recommend.model_validate({"likes": some[:1]}))
        pair = {"item": some[0], "rival": some[1]}
        prefer(served, schemas.Prefer.model_validate({**who, "pairs": [pair]}))
        visitor(served, schemas.Visitor.model_validate({"comparisons": [{"winner": some[0], "loser": some[1]}]}))
        explain(served, schemas.Explain.model_validate({**who, **pair}))
        slate(served, schemas.Slate.model_validate({**who, "items": some[:2]}))
    cycles(served, schemas.Cycles.model_validate(who))
    worth(served, schemas.Worth.model_validate({}))
    users(served, schemas.UsersQuery.model_validate({}))
    similar(served, schemas.Similar.model_validate({"item": str(some[0])}))
