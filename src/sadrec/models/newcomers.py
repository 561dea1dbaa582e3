"""New users and items: their vectors from likes, comparisons or features."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sadrec._core.sparse import as_csr, drop_disliked, enlarged
from sadrec._core.types import Doubles, Floats, Positions
from sadrec.data import Comparisons
from sadrec.data.ids import IdArray, Ids, join_ids
from sadrec.features import Features
from sadrec.features.predictor import ModelFeatures, Predictor, item_parts
from sadrec.models.state import State
from sadrec.ranking.belief import Gaussian
from sadrec.ranking.logistic import Estimate
from sadrec.ranking.parameters import Parameters, average_user

if TYPE_CHECKING:
    from sadrec.models.sad import SAD


class Placed(NamedTuple):
    """A visitor: their vector, its covariance, and the positions of the items they liked."""

    vector: Doubles
    covariance: Doubles
    liked: Positions


def visitor_state(state: State, name: Any, liked: Any, comparisons: Comparisons | None, features: Any) -> State:
    """Return the state of a model of one visitor, with the items of ``state``."""
    if liked is comparisons is features is None:
        placed = Placed(average_user(state.parameters), state.visitors.population, np.empty(0, np.int64))
    else:
        folded, columns = place(state, liked, comparisons, features)
        compared = comparisons is not None or liked is None
        placed = Placed(folded.vector, state.visitors.covariance(folded, compared), columns)
    seen = None
    if liked is not None:
        shape, count = (1, len(state.items)), len(placed.liked)
        seen = sp.csr_matrix((np.ones(count, np.float32), placed.liked, [0, count]), shape=shape)
    belief = state.belief.of_user(placed.vector, placed.covariance)
    if comparisons is not None:
        belief = belief.with_answers(*_answers(state, comparisons))
    features = None if state.features is None else ModelFeatures(item=state.features.item)
    visitor = State(belief, Ids([name], "user"), state.items, seen, state.settings, state.history, features)
    visitor.__dict__["index"] = state.index  # the same items
    return visitor


def place(state: State, liked: Any, comparisons: Comparisons | None, features: Any) -> tuple[Estimate, Positions]:
    """Return the vector of a visitor, and the positions of what they liked, each once."""
    columns = np.empty(0, np.int64)
    if liked is not None and comparisons is not None:
        raise ValueError("give liked (ids of items) or comparisons, not both")
    if isinstance(liked, Comparisons):
        raise TypeError("liked takes ids of items: give Comparisons as comparisons=...")
    if liked is not None:
        columns = np.unique(state.items.several(liked, "liked"))
        folded = state.visitors.from_likes(columns)
    elif comparisons is not None:
        if len(np.unique(comparisons.user_index)) > 1:
            raise ValueError("the comparisons are of several users, and a vector belongs to one: give those of one")
        folded = state.visitors.from_comparisons(*_answers(state, comparisons))
    elif features is None:
        raise ValueError("the visitor has no data: give liked, comparisons or features")
    if features is None:
        return folded, columns
    centre = predicted_user(state, features)
    if liked is comparisons is None:
        return Estimate(centre, lambda: _own_population(state), 0), columns
    answers = len(columns) if comparisons is None else len(comparisons)
    return state.visitors.held_to(centre, folded, answers, comparisons is not None), columns


def _answers(state: State, comparisons: Comparisons) -> tuple[Positions, Positions, Any]:
    """Return the positions of winners and losers, and the weights, of comparisons that were no ties."""
    decided = comparisons.decided
    winners, losers = (
        state.items.positions(decided.items[side]) for side in (decided.winner_index, decided.loser_index)
    )
    return winners, losers, decided.weight


def vectors_from(state: State, user_items: Any) -> Floats:
    """Return a vector for each row of liked items; zeros for a row of no items or of all items."""
    vectors = np.zeros((user_items.shape[0], state.parameters.n_factors), np.float32)
    liked = drop_disliked(user_items)
    for row in np.flatnonzero((np.diff(liked.indptr) > 0) & (np.diff(liked.indptr) < len(state.items))):
        vectors[row] = state.visitors.from_likes(liked.indices[liked.indptr[row] : liked.indptr[row + 1]]).vector
    return vectors


def known_to(seen: Any, users: Positions, user_items: Any, items: int) -> Any:
    """Return the users' seen items, CSR, from ``user_items`` or from training; None without any."""
    if user_items is None:
        return None if seen is None else seen[users]
    if isinstance(user_items, int | np.integer):
        raise TypeError(f"user_items must be a sparse matrix, not {user_items}: did you mean N={user_items}?")
    given = as_csr(user_items, "user_items")
    if given.shape != (len(users), items):
        raise ValueError(
            f"user_items must have a row for each of the {len(users)} users asked about and a column for each "
            f"of the model's {items} items, not the shape {given.shape}"
        )
    return given


def recommend_known(
    model: "SAD", users: IdArray, user_items: Any, on_unknown: str, own: dict[str, Any], options: dict[str, Any]
) -> tuple[IdArray, Floats]:
    """Return lists of the users that a model knows; the others get popular items, or no rows."""
    present = model.state.users.known(users)
    liked = None if user_items is None else as_csr(user_items, "user_items")[present]
    answers = model.recommend(users[present], liked, **own, **options)
    if on_unknown == "skip":
        return answers
    popular = model.visitor().recommend(["visitor"], **options)
    ids, scores = (np.repeat(other, len(present), axis=0) for other in popular)
    ids[present], scores[present] = answers
    return ids, scores


# -- by features ------------------------------------------------------------------------------------------------------


def predicted_user(state: State, features: Any) -> Doubles:
    """Return a user's vector predicted from features."""
    predictor = known_features(state, "user")
    return np.asarray(_within(predictor.predict(predictor.encoder.encode_one(features)), "user")[0])


def known_features(state: State, what: str) -> Predictor:
    """Return the predictor of items, or of users; raise if the model has none."""
    return (state.features or ModelFeatures()).side(what)


def _own_population(state: State) -> Doubles:
    """Return the covariance of the users' vectors around what features predict."""
    predictor = known_features(state, "user")
    own = (state.parameters.user_factors - predictor.predict(predictor.rows))[~predictor.cold]
    return np.atleast_2d(np.cov(own, rowvar=False)) if len(own) > 1 else state.visitors.population


def own_spread(state: State) -> Doubles:
    """Return the covariance of eta, and of the bias, of the items around what features predict."""
    predictor = known_features(state, "item")
    eta, _, bias = item_parts(predictor.predict(predictor.rows), *_kind(state.parameters))
    own = [state.parameters.item_factors - eta]
    if state.parameters.item_bias is not None:
        own.append((state.parameters.item_bias - bias)[:, None])
    rows = np.hstack(own)[~predictor.cold]
    return np.atleast_2d(np.cov(rows, rowvar=False)) if len(rows) > 1 else np.zeros((rows.shape[1],) * 2)


def added(state: State, what: str, values: Any) -> State:
    """Return the state with new items, or users, placed by their features alone."""
    predictor = known_features(state, what)
    features = values if isinstance(values, Features) else Features(values)
    table = features.table([], what)
    return with_rows(state, what, table.ids, predictor.encoder.encode(table))


def with_rows(state: State, what: str, new: Ids, rows: Any) -> State:
    """Return the state with new items, or users, whose features are encoded already."""
    predictor, features = known_features(state, what), state.features or ModelFeatures()
    ids = state.items if what == "item" else state.users
    if (present := ids.known(new.array)).any():
        raise ValueError(
            f"the {what} {new.array[present.argmax()].item()!r} is known already: leave it out, or fit again"
        )
    predicted, count = _within(predictor.predict(rows), what), len(new)
    cold = np.append(predictor.cold, np.ones(count, np.bool_))
    wider = replace(predictor, rows=sp.csr_matrix(sp.vstack((predictor.rows, rows))), cold=cold)
    all_ids = Ids(join_ids(ids.array, new.array), what)
    old, belief = state.parameters, state.belief
    plain: Any = belief  # a dataclass
    larger: Any
    if what == "user":
        parameters = replace(old, user_factors=_joined(old.user_factors, predicted))
        larger = (
            belief.with_users(parameters) if isinstance(belief, Gaussian) else replace(plain, parameters=parameters)
        )
        changed: dict[str, Any] = {"users": all_ids, "features": replace(features, user=wider)}
    else:
        eta, tau, bias = item_parts(predicted, *_kind(old))
        parameters = replace(
            old,
            item_factors=_joined(old.item_factors, eta),
            rival_factors=None if old.rival_factors is None else _joined(old.rival_factors, np.maximum(tau, 0)),
            item_bias=None if old.item_bias is None else _joined(old.item_bias, bias),
        )
        larger = replace(plain, parameters=parameters)
        if isinstance(belief, Gaussian):
            of_known_items = float(belief.item_covariance[~predictor.cold, 0, 0].mean())
            larger = belief.with_items(parameters, float(own_spread(state)[-1, -1]) + of_known_items)
        changed = {"items": all_ids, "features": replace(features, item=wider)}
    seen = state.seen
    if seen is not None:
        seen = enlarged(seen, parameters.n_users, parameters.n_items)
    return replace(state, belief=larger, stored_seen=seen, file=None, **changed)


def _kind(parameters: Parameters) -> tuple[int, bool, bool]:
    """Return the number of factors, and whether rivals and biases are learnt."""
    return parameters.n_factors, parameters.rival_factors is not None, parameters.item_bias is not None


def _within(predicted: Doubles, what: str) -> Doubles:
    """Return predictions; raise if they are too large, since margins multiply three such numbers."""
    if not (np.abs(predicted) < 1e6).all():
        raise ValueError(f"features of the {what} are too far from all that the fit has seen: check their units")
    return predicted


def _joined(first: Any, second: Any) -> Floats:
    """Return the rows of both in one read-only array of the type of the first."""
    rows: Floats = np.concatenate((first, np.asarray(second, first.dtype)))
    rows.flags.writeable = False
    return rows
