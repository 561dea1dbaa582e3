"""What a model has learnt, and the way from ids to positions and back."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np
import scipy.sparse as sp

from sadrec._check import whole
from sadrec._sparse import as_csr
from sadrec._types import Doubles, Floats, Positions
from sadrec.data import Comparisons
from sadrec.data._matrix import drop_disliked, enlarged, join_ids
from sadrec.data.ids import IdArray, Ids, is_scalar_id
from sadrec.features import Features
from sadrec.models.features import ModelFeatures, Predictor, item_parts
from sadrec.models.stacked import StackedMatrix
from sadrec.ranking import Parameters
from sadrec.ranking.fold_in import FoldIn, Negatives, Side, average_user, fold_in, fold_in_comparisons, pack_small
from sadrec.ranking.logistic import Estimate
from sadrec.ranking.parameters import is_vector
from sadrec.ranking.top_n import ItemIndex, recommend
from sadrec.ranking.tournament import Tournament, tournament
from sadrec.ranking.uncertainty import Distributed, Uncertainty, VisitorUncertainty
from sadrec.ranking.vectors import item_vectors, user_vectors
from sadrec.training.settings import Settings
from sadrec.training.trainer import Figures

Scored = tuple[IdArray, Floats]
_NOTHING_SEEN = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a model has learnt. A fit replaces it as a whole, so that no answer mixes two fits."""

    parameters: Parameters
    user_ids: Ids
    item_ids: Ids
    stored_seen: Any = None  # what was seen in training, CSR (users x items), or a function that reads it from a file
    settings: Settings | None = None  # what the fit used; None for given parameters
    history: list[Figures] = field(default_factory=list)  # the figures of every epoch
    uncertainty: Distributed | None = None  # how sure the fit is, where it knows
    file: tuple[Path, str] | None = None  # from which it was read, and its checksum
    features: ModelFeatures | None = None  # what features predict, where the fit had some
    away: Any = None  # who holds the users, where that is not this process

    @cached_property
    def seen(self) -> Any:
        """What was seen in training, CSR (users x items), or None; below 0 where it was disliked."""
        return self.stored_seen() if callable(self.stored_seen) else self.stored_seen

    @cached_property
    def liked(self) -> Any:
        """What was seen and not disliked, or None."""
        return drop_disliked(self.seen)

    @cached_property
    def index(self) -> ItemIndex:
        """The items, packed for search."""
        return ItemIndex(item_vectors(self.parameters))

    # -- ids ----------------------------------------------------------------------------------------------------------

    def user(self, asked: Any) -> int:
        """Return the position of one user."""
        return one_position(self.user_ids, asked)

    def users(self, asked: Any) -> Positions:
        """Return the positions of one user or of several, as an array."""
        return np.atleast_1d(self.user_ids.positions(asked))

    def triples(self, user: Any, item: Any, rival: Any) -> tuple[Any, Any, Any]:
        """Return the positions of a user, an item and a rival, or of arrays of them."""
        return positions(self.user_ids, user), positions(self.item_ids, item), positions(self.item_ids, rival)

    def items(self, asked: Any, name: str = "items") -> Positions:
        """Return the positions of a sequence of items, which ``name`` calls what it was given as."""
        if is_scalar_id(asked):
            raise TypeError(f"{name} must be a sequence of ids, not {asked!r}: put a single id into a list")
        return np.asarray(self.item_ids.positions(asked))

    # -- margins ------------------------------------------------------------------------------------------------------

    def beside_factors(self, users: Any, items: Any, rivals: Any) -> Any:
        """Return what is added to the margins of the factors, for positions that broadcast."""
        if self.uncertainty is None:
            return 0.0
        return self.uncertainty.beside_factors(self.parameters, users, items, rivals)[0]

    @property
    def knows_pairings(self) -> bool:
        """Whether margins have a part that is about two items, or a user and an item, alone."""
        return isinstance(self.uncertainty, Uncertainty)

    def tournament(self, user: int, items: Positions, labels: Any) -> Tournament:
        """Let items play each other for a user."""
        game = tournament(self.parameters, user, items, labels)
        if not self.knows_pairings:
            return game
        return replace(game, margins=game.margins + self.beside_factors(user, items[:, None], items))

    # -- what is known of users ---------------------------------------------------------------------------------------

    def liked_by(self, user: int) -> Positions:
        """Return the items that a user was seen with and did not dislike."""
        return np.empty(0, np.int64) if self.seen is None else drop_disliked(self.seen[[user]]).indices

    def known_to(self, users: Positions, user_items: Any) -> Any:
        """Return what these users know, a CSR matrix with a row for each; None when nothing is known."""
        return known_to(self.seen, users, user_items, len(self.item_ids))

    # -- lists --------------------------------------------------------------------------------------------------------

    def best(self, user: int, N: int, num_threads: int, new: bool = True) -> tuple[Positions, IdArray]:
        """Return the positions and ids of a user's best N items by mean margin, of all or of those not seen."""
        row = np.array([user])
        seen = self.seen[row] if new and self.seen is not None else None
        vector = user_vectors(self.parameters, row)
        positions, _ = self.index.search(vector, self._at_most(N), seen=seen, num_threads=num_threads)
        best = positions[0][positions[0] >= 0]
        return best, self.item_ids.array[best]

    def best_for_one(self, user: int, N: int, new: bool = True) -> tuple[Positions, Floats]:
        """Return the positions and scores of a user's best N items by mean margin, of all or of those not seen."""
        seen = self._seen_by(user) if new else _NOTHING_SEEN
        return self.best_by_vector(self.parameters.user_factors[user], N, seen)

    def best_by_vector(self, factors: Floats, N: int, seen: Any) -> tuple[Positions, Floats]:
        """Return the positions and scores of the best N items by mean margin but those seen, which are in order."""
        query = np.ones(self.index.factors, np.float32)  # the last entry stands for the bias, if there is one
        query[: factors.size] = factors
        return self.index.search_one(query, N, seen)

    def _seen_by(self, user: int) -> Any:
        """Return the items that a user was seen with, in order."""
        if isinstance(self.seen, StackedMatrix):
            return self.seen.items_of(user)
        start, items = self._seen_rows
        return items[start[user] : start[user + 1]] if start.size else _NOTHING_SEEN

    @cached_property
    def _seen_rows(self) -> tuple[Positions, Any]:
        """Where the items that each user was seen with begin, and these items, in order; empty where none are known."""
        if self.seen is None:
            return np.empty(0, np.int64), _NOTHING_SEEN
        seen = self.seen if self.seen.has_sorted_indices else self.seen.sorted_indices()
        return seen.indptr.astype(np.int64, copy=False), seen.indices.astype(np.int32, copy=False)

    def recommend(self, users: Any, N: int, known: Any, *, items: Any, filter_items: Any, **options: Any) -> Scored:
        """Return the best N items for each of some users (positions or vectors), padded: see ``SAD.recommend``."""
        if items is not None and filter_items is not None:
            raise ValueError("give items (the only ones to consider) or filter_items (to leave out), not both")
        positions, scores = recommend(
            self.parameters,
            users,
            N,
            liked=known,
            allowed=None if items is None else self.item_ids.positions(items),
            blocked=None if filter_items is None else self.item_ids.positions(filter_items),
            index=self.index,
            **options,
        )
        return named(self.item_ids, positions), scores

    def recommend_to_one(self, users: Any, N: int, known: Any, **options: Any) -> Scored:
        """Return the best N items for one user, without padding."""
        plain = options.get("method", "margin") == "margin" and options["items"] is options["filter_items"] is None
        if plain and options.get("progress") is None and is_vector(users):
            seen = _NOTHING_SEEN
            if known is not None and options.get("leave_out_liked", True):
                seen = np.sort(known.indices).astype(np.int32)
            positions, scores = self.best_by_vector(users[0], whole(N, "N"), seen)
            return self.item_ids.array[positions], scores
        ids, scores = (answer[0] for answer in self.recommend(users, self._at_most(N), known, **options))
        real = scores > -np.inf
        return ids[real], scores[real]

    def _at_most(self, N: int) -> int:
        """Return N, or the number of items if that is less: one user's answer is never longer."""
        return min(N, len(self.item_ids)) if isinstance(N, int | np.integer) else N

    # -- a new user -------------------------------------------------------------------------------------------------

    @property
    def regularization(self) -> float:
        """The l2 penalty of the fit; a small one where there was none, or the problem has no single answer.

        Vectors of a fixed length had none: with this one, those of new users come out about as long.
        """
        if self.settings is None:
            return 0.01
        penalty = 0.2 / self.settings.length**4 if self.settings.length else self.settings.regularization
        return max(penalty, 1e-6)

    @cached_property
    def sampling(self) -> dict[str, Any]:
        """How negatives were sampled in training, as fold-in takes it."""
        if self.settings is None:
            return {}
        if self.settings.negative_sampling == "popular" and self.seen is not None:
            return {"popularity": np.bincount(self.seen.indices, minlength=len(self.item_ids))}
        # Trained against many negatives at once, a user is found best among all of them (measured: docs/top_n.md).
        return {"candidates": 1 if self.settings.loss == "softmax" else self.settings.negative_candidates}

    def fold_in(self, items: Any, features: Any = None) -> FoldIn:
        """Fold in a new user from the ids of what they liked, or from comparisons of one user; and by their features.

        Features move what the vector is held to, from 0 (or the average user) to the prediction. The vector follows to
        first order: by its covariance times the change of the gradient. (It is one step of Newton's method.)
        """
        if features is None:
            return self._fold_in(items)
        centre = self.predicted_user(features)
        if items is None:
            return FoldIn(Estimate(centre, lambda: self._own_population, 0), 0)
        folded = self._fold_in(items)
        count = len(items)
        if self._spread is not None:
            pull = (centre - average_user(self.parameters)) / np.maximum(self._spread, 1e-4) ** 2
        elif isinstance(items, Comparisons):
            if self._user_deviation is None:
                pull = 2 * self.regularization * count * centre
            else:
                pull = (centre - average_user(self.parameters)) / np.maximum(self._user_deviation, 1e-4) ** 2
        else:
            pull = 2 * self.regularization * count / self._weight_of(count) * centre
        vector = folded.vector + folded.covariance @ pull
        return FoldIn(Estimate(vector, lambda: folded.covariance, folded.steps), folded.pairs)

    def predicted_user(self, features: Any) -> Doubles:
        """Return the vector that features predict of a user."""
        predictor = self.known_features("user")
        return np.asarray(_within(predictor.predict(predictor.encoder.encode_one(features)), "user")[0])

    def predicted_item(self, features: Any) -> tuple[Doubles, Doubles, float]:
        """Return eta, tau and the bias that features predict of an item."""
        predictor = self.known_features("item")
        predicted = _within(predictor.predict(predictor.encoder.encode_one(features)), "item")
        eta, tau, bias = item_parts(predicted, self.parameters.n_factors, self.parameters)
        return eta[0], tau[0], float(bias[0])

    def known_features(self, what: str) -> Predictor:
        """Return what the features of items, or of users, predict."""
        return (self.features or ModelFeatures()).side(what)

    @cached_property
    def _own_population(self) -> Doubles:
        """The covariance of what is the users' own beside what features predict."""
        predictor = self.known_features("user")
        own = (self.parameters.user_factors - predictor.predict(predictor.rows))[~predictor.cold]
        return np.atleast_2d(np.cov(own, rowvar=False)) if len(own) > 1 else self._population

    def own_spread(self) -> Doubles:
        """Return the covariance of what is the items' own beside what features predict: of eta, and of the bias."""
        predictor, k = self.known_features("item"), self.parameters.n_factors
        eta, _, bias = item_parts(predictor.predict(predictor.rows), k, self.parameters)
        own = [self.parameters.item_factors - eta]
        if self.parameters.item_bias is not None:
            own.append((self.parameters.item_bias - bias)[:, None])
        rows = np.hstack(own)[~predictor.cold]
        return np.atleast_2d(np.cov(rows, rowvar=False)) if len(rows) > 1 else np.zeros((rows.shape[1],) * 2)

    def added(self, what: str, values: Any) -> "Fitted":
        """Return the same with new items, or users, that are known by their features alone."""
        predictor = self.known_features(what)
        features = values if isinstance(values, Features) else Features(values)
        table = features.table([], what)
        return self.with_rows(what, table.ids, predictor.encoder.encode(table))

    def with_rows(self, what: str, new: Ids, rows: Any) -> "Fitted":
        """Return the same with new items, or users, whose features are encoded already."""
        predictor, features_before = self.known_features(what), self.features or ModelFeatures()
        ids = self.item_ids if what == "item" else self.user_ids
        if (known := ids.known(new.array)).any():
            raise ValueError(
                f"the {what} {new.array[known.argmax()].item()!r} is known already: leave it out, or fit again"
            )
        predicted, count = _within(predictor.predict(rows), what), len(new)
        cold = np.append(predictor.cold, np.ones(count, np.bool_))
        wider = replace(predictor, rows=sp.csr_matrix(sp.vstack((predictor.rows, rows))), cold=cold)
        all_ids = Ids(join_ids(ids.array, new.array), what)
        old, sure, seen = self.parameters, self.uncertainty, self.seen
        if what == "user":
            parameters = replace(old, user_factors=_joined(old.user_factors, predicted))
            sure = sure.with_users(count) if isinstance(sure, Uncertainty) else sure
            changed: dict[str, Any] = {"user_ids": all_ids, "features": replace(features_before, user=wider)}
        else:
            eta, tau, bias = item_parts(predicted, old.n_factors, old)
            parameters = replace(
                old,
                item_factors=_joined(old.item_factors, eta),
                rival_factors=None if old.rival_factors is None else _joined(old.rival_factors, tau),
                item_bias=None if old.item_bias is None else _joined(old.item_bias, bias),
            )
            if isinstance(sure, Uncertainty):
                unsure = float(sure.item_covariance[~predictor.cold, 0, 0].mean())  # of the known items
                sure = sure.with_items(count, float(self.own_spread()[-1, -1]) + unsure)
            changed = {"item_ids": all_ids, "features": replace(features_before, item=wider)}
        if seen is not None:
            seen = enlarged(seen, parameters.n_users, parameters.n_items)
        return replace(self, parameters=parameters, stored_seen=seen, uncertainty=sure, file=None, **changed)

    def _fold_in(self, items: Any) -> FoldIn:
        if not isinstance(items, Comparisons):
            return self.fold_in_positions(self.items(items, "liked items"))
        if len(np.unique(items.user_index)) > 1:
            raise ValueError("the comparisons are of several users, and a vector belongs to one: give those of one")
        sides = (self.item_ids.positions(items.items[side]) for side in (items.winner_index, items.loser_index))
        spread = self._user_deviation if self._spread is None else self._spread
        return fold_in_comparisons(
            self.parameters, *sides, weight=items.weight, regularization=self.regularization, spread=spread
        )

    def fold_in_positions(self, liked: Positions) -> FoldIn:
        """Fold in a new user from the positions of what they liked."""
        penalty = self.regularization / self._weight_of(len(liked))
        more = {"spread": self._spread, "drawn": self._negatives, "packed": self._packed, **self.sampling}
        return fold_in(self.parameters, liked, regularization=penalty, **more)

    @cached_property
    def _negatives(self) -> Negatives | None:
        """Negatives that new users meet, drawn once, where the catalogue is large."""
        return Negatives.drawn_from(self.parameters, **self.sampling)

    @cached_property
    def _packed(self) -> Side | None:
        """The rows of the items, side by side for new users, where the catalogue is small."""
        return pack_small(self.parameters)

    @property
    def _spread(self) -> Doubles | None:
        """How much users differ in each factor, where the fit knows that."""
        return self.uncertainty.population[1] if isinstance(self.uncertainty, Uncertainty) else None

    @cached_property
    def _user_deviation(self) -> Doubles | None:
        """How much the users' vectors differ in each factor; None where there are not two users."""
        vectors = self.parameters.user_factors
        return None if len(vectors) < 2 else np.asarray(vectors.std(axis=0, dtype=np.float64))

    def visitor(self, said: Any, name: Any, features: Any = None) -> "Fitted":
        """Return what is known of one visitor, who knows the same items, with how sure that is."""
        liked = None
        if said is None and features is None:
            vector, covariance = average_user(self.parameters), self._population
        else:
            folded = self.fold_in(said, features)
            vector, covariance = folded.vector, folded.covariance
            if said is not None and not isinstance(said, Comparisons):
                if self._spread is None:  # l2 says little of what people are like: a visitor is one of them, too
                    covariance = covariance @ np.linalg.solve(covariance + self._population, self._population)
                    covariance = (covariance + covariance.T) / 2
                columns = np.unique(self.items(said, "liked items"))
                shape = 1, len(self.item_ids)
                liked = sp.csr_matrix((np.ones(len(columns), np.float32), columns, [0, len(columns)]), shape=shape)
        row = vector.astype(np.float32)[None]
        row.flags.writeable = False
        mean = average_user(self.parameters).astype(np.float32)
        known = self.uncertainty
        sure: Distributed = VisitorUncertainty(np.asarray(covariance, np.float64))
        if isinstance(known, Uncertainty):
            sure = known.of_visitor(covariance)
        parameters = replace(self.parameters, user_factors=row, user_mean=mean)
        visitor = Fitted(parameters, Ids([name], "user"), self.item_ids, liked, self.settings, self.history, sure)
        if self.features is not None:
            visitor = replace(visitor, features=ModelFeatures(item=self.features.item))
        visitor.__dict__["index"] = self.index  # the same items
        return visitor

    @cached_property
    def _population(self) -> Doubles:
        """The covariance of the users' vectors: the prior of a user without data."""
        if self._spread is not None:
            return np.diag(self._spread**2)
        vectors = self.parameters.user_factors
        if len(vectors) < 2:
            return np.eye(vectors.shape[1]) / (2 * self.regularization)
        return np.atleast_2d(np.cov(vectors.astype(np.float64), rowvar=False))

    def vectors_from(self, known: Any) -> Floats:
        """Return a vector for each row of liked items; zeros for a row of no items or of all items."""
        vectors = np.zeros((known.shape[0], self.parameters.n_factors), np.float32)
        liked = drop_disliked(known)
        for row in np.flatnonzero((np.diff(liked.indptr) > 0) & (np.diff(liked.indptr) < len(self.item_ids))):
            vectors[row] = self.fold_in_positions(liked.indices[liked.indptr[row] : liked.indptr[row + 1]]).vector
        return vectors

    def _weight_of(self, liked: int) -> float:
        """Return what an interaction of a user with so many of them would have weighed in training."""
        if self.settings is None or not self.settings.user_balance or self.seen is None:
            return 1.0
        power, (total, weighed) = self.settings.user_balance, self._interactions
        raw = max(1.0, liked) ** -power
        return float(raw * (total + liked) / (weighed + liked * raw))  # balance() of everybody and of this one

    @cached_property
    def _interactions(self) -> tuple[int, float]:
        """How many interactions there are, and what they weigh in all before their mean is made 1."""
        counts = np.diff(self.liked.indptr)
        power = 0.0 if self.settings is None else self.settings.user_balance
        return int(counts.sum()), float(counts @ np.maximum(counts, 1.0) ** -power)


def _within(predicted: Doubles, what: str) -> Doubles:
    """Return what features predict, refusing what could not be computed with: margins multiply three such numbers."""
    if not (np.abs(predicted) < 1e6).all():
        raise ValueError(f"features of the {what} are too far from all that the fit has seen: check their units")
    return predicted


def _joined(first: Any, second: Any) -> Floats:
    """Return rows one after the other, in the type of the first, which nobody can change."""
    rows: Floats = np.concatenate((first, np.asarray(second, first.dtype)))
    rows.flags.writeable = False
    return rows


def one_position(ids: Ids, asked: Any) -> int:
    """Return the position of one id."""
    if not is_scalar_id(asked):
        raise TypeError(f"{ids.what} must be one id, not {shortened(asked)}: ask about one at a time")
    return int(ids.positions(asked))


def positions(ids: Ids, asked: Any) -> Any:
    """Return the position of one id, or the positions of an array of ids of any shape."""
    shape = np.shape(asked)
    return ids.positions(np.ravel(asked)).reshape(shape) if len(shape) > 1 else ids.positions(asked)


def named(ids: Ids, positions: Positions) -> IdArray:
    """Return the ids at some positions; for -1 an id that means nothing: -1 (0 if unsigned), NaN, NaT or ""."""
    answer = ids.array[positions]
    answer[positions < 0] = {"i": -1, "u": 0, "f": np.nan, "U": "", "M": np.datetime64("NaT", "D")}[answer.dtype.kind]
    return answer


def known_to(seen: Any, users: Positions, user_items: Any, items: int) -> Any:
    """Return what users know, a CSR matrix with a row for each, from ``user_items`` or what was seen; None: nothing."""
    if user_items is None:
        return None if seen is None else seen[users]
    known = as_csr(user_items, "user_items")
    if known.shape != (len(users), items):
        raise ValueError(
            f"user_items must have a row for each of the {len(users)} users asked about and a column for each "
            f"of the model's {items} items, not the shape {known.shape}"
        )
    return known
