"""What people ask of the draws: how strong a preference is, how sure, who is best, what to show, what to ask next."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import entr, ndtr

from sadrec.data.ids import IdArray, Ids
from sadrec.posterior.draws import Draws

Floats = NDArray[np.float64]
Quantity = Literal["preference", "probability"]

_CHUNK = 1 << 23
"""How many draws of preferences are held at a time."""
LOGIT_PER_PROBIT = 1.702
"""Phi(x) and sigmoid(1.702 x) differ by less than 0.01 everywhere (Haley, 1952)."""


def check_level(level: float) -> float:
    """Return the probability content of an interval, checked."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.9, not {level!r}")
    return float(level)


def check_count(name: str, value: int) -> int:
    """Return how many of something are asked for, checked."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more, not {value!r}")
    return int(value)


class Sampled:
    """What the questions need to know: draws, and ids for their rows."""

    drawn: Draws
    user_ids: Ids
    item_ids: Ids
    seen: Any

    def _one_user(self, user: Any) -> int:
        row = self.user_ids.positions(user)
        if np.ndim(row):
            raise ValueError(f"user must be one id, not {len(row)}: ask for one user after the other")
        return int(row)

    def _user_row(self, user: Any) -> int | None:
        return None if user is None else self._one_user(user)

    def _item_rows(self, items: Any) -> NDArray[np.int64]:
        if items is None:
            return np.arange(len(self.item_ids))
        rows = np.atleast_1d(self.item_ids.positions(items))
        if len(np.unique(rows)) < len(rows):
            raise ValueError("an item is named twice: give distinct items")
        return rows

    def _rows(self, user: Any, item: Any, rival: Any) -> tuple[Any, Any, Any]:
        users = None if user is None else self.user_ids.positions(user)
        return users, self.item_ids.positions(item), self.item_ids.positions(rival)


class PairQuestions(Sampled):
    """One item against another. Wherever a user is asked for, None means the mean over all users: the crowd."""

    def preference(self, user: Any, item: Any, rival: Any) -> Floats:
        """Return draws of ``x_uij``, in units of the probit: the item is preferred with probability ``Phi(x)``.

        Parameters
        ----------
        user, item, rival
            Ids; arrays of ids broadcast against each other. ``user=None`` is the mean over all users.

        Returns
        -------
        ndarray
            (draws, ...), chain after chain.
        """
        return self.drawn.preference(*self._rows(user, item, rival))

    def probability(self, user: Any, item: Any, rival: Any) -> Floats:
        """Return draws of the probability ``Phi(x_uij)`` that a user prefers an item to a rival when asked once.

        Parameters
        ----------
        user, item, rival
            As for :meth:`preference`.
        """
        return np.asarray(ndtr(self.preference(user, item, rival)))

    def mean(self, user: Any, item: Any, rival: Any, of: Quantity = "preference") -> Any:
        """Return the posterior mean of a preference, or of its probability.

        Parameters
        ----------
        user, item, rival
            As for :meth:`preference`.
        of
            "preference" or "probability"; the latter is the chance that the next answer will be the item.
        """
        return self._summary(user, item, rival, of, lambda draws: draws.mean(axis=0, keepdims=True))[0]

    def interval(
        self, user: Any, item: Any, rival: Any, level: float = 0.9, of: Quantity = "preference"
    ) -> tuple[Any, Any]:
        """Return the lower and the upper end of the interval that holds a preference with a given probability.

        Parameters
        ----------
        user, item, rival
            As for :meth:`preference`.
        level
            Probability content; as much is left out on either side.
        of
            "preference" or "probability".
        """
        tail = (1 - check_level(level)) / 2
        low, high = self._summary(user, item, rival, of, lambda draws: np.quantile(draws, [tail, 1 - tail], axis=0))
        return low, high

    def probability_beats(self, user: Any, item: Any, rival: Any) -> Any:
        """Return how sure it is that a user prefers an item to a rival at all: the probability that ``x_uij > 0``.

        Parameters
        ----------
        user, item, rival
            As for :meth:`preference`.
        """
        return self._summary(user, item, rival, "preference", lambda draws: (draws > 0).mean(axis=0, keepdims=True))[0]

    def _summary(
        self, user: Any, item: Any, rival: Any, of: Quantity, summarise: Callable[[Floats], Floats]
    ) -> list[Any]:
        """Return numbers that summarise the draws of many preferences, a part of which is held at a time."""
        if of not in ("preference", "probability"):
            raise ValueError(f'of must be "preference" or "probability", not {of!r}')
        u, i, j = self._rows(user, item, rival)
        drawn, u = (self.drawn.crowd(), 0) if u is None else (self.drawn, u)
        u, i, j = np.broadcast_arrays(u, i, j)
        shape, step = i.shape, max(1, _CHUNK // len(self.drawn))
        u, i, j = u.ravel(), i.ravel(), j.ravel()
        parts = []
        for start in range(0, max(1, len(i)), step):
            part = slice(start, start + step)
            draws = drawn.preference(u[part], i[part], j[part])
            parts.append(summarise(ndtr(draws) if of == "probability" else draws))
        numbers = np.concatenate(parts, axis=-1)
        return [float(row[0]) if shape == () else row.reshape(shape) for row in numbers]


class ListQuestions(Sampled):
    """Many items at once."""

    def ranking(self, user: Any = None, items: Any = None, level: float = 0.9) -> pl.DataFrame:
        """Rank items by their mean margin over each other, with intervals.

        Parameters
        ----------
        user
            An id; None ranks for the crowd.
        items
            Ids of the items that compete; None means all.
        level
            Probability content of the intervals.

        Returns
        -------
        polars.DataFrame
            Best first: ``item``; ``score``, the posterior mean of the mean margin, with ``score_lower`` and
            ``score_upper``; ``rank``, with ``rank_lower`` and ``rank_upper``, the interval of the item's place among
            the draws; ``best``, the probability that it comes first.
        """
        rows = self._item_rows(items)
        tail = (1 - check_level(level)) / 2
        scores = self.drawn.scores(self._user_row(user), rows)
        places = np.empty(scores.shape, np.int64)
        order = np.argsort(-scores, axis=1, kind="stable")
        np.put_along_axis(places, order, np.arange(1, len(rows) + 1)[None], axis=1)
        low, high = np.quantile(scores, [tail, 1 - tail], axis=0)
        place_low, place_high = np.quantile(places, [tail, 1 - tail], axis=0, method="nearest")
        best = np.argsort(-scores.mean(axis=0), kind="stable")
        return pl.DataFrame(
            {
                "rank": np.arange(1, len(rows) + 1),
                "item": self.item_ids.array[rows[best]],
                "score": scores.mean(axis=0)[best],
                "score_lower": low[best],
                "score_upper": high[best],
                "rank_lower": place_low[best].astype(np.int64),
                "rank_upper": place_high[best].astype(np.int64),
                "best": (places == 1).mean(axis=0)[best],
            }
        )

    def recommend(
        self,
        user: Any,
        N: int = 10,
        *,
        sample: bool = False,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        items: Any = None,
        random_state: int | np.random.Generator | None = None,
    ) -> tuple[IdArray, Floats]:
        """Return the best N items for a user and their scores (mean margins over the catalogue).

        Parameters
        ----------
        user
            An id.
        N
            How many.
        sample
            False ranks by the posterior mean. True takes one draw from the posterior and ranks by it (Thompson
            sampling): an item comes first as often as it is probably the best, so that what is uncertain gets tried.
        filter_already_liked_items
            Leave out what the user interacted with; comparisons leave out nothing.
        filter_items
            Ids of items to leave out.
        items
            Ids of the only items to consider.
        random_state
            Chooses the draw; None takes a new one every time.
        """
        check_count("N", N)
        row = self._one_user(user)
        if sample:
            draw = int(np.random.default_rng(random_state).integers(len(self.drawn)))
            chain, number = divmod(draw, len(self.drawn) // self.drawn.chains)
            scores = self.drawn.one(chain, number).scores(row, np.arange(len(self.item_ids)))[0]
        else:
            scores = self.drawn.scores(row, np.arange(len(self.item_ids))).mean(axis=0)
        allowed = np.zeros(len(self.item_ids), bool)
        allowed[self._item_rows(items)] = True
        if filter_items is not None:
            allowed[self.item_ids.positions(filter_items)] = False
        if filter_already_liked_items and self.seen is not None:
            allowed[self.seen[row].indices] = False
        rows = np.flatnonzero(allowed)
        best = rows[np.argsort(-scores[rows], kind="stable")[:N]]
        return self.item_ids.array[best], scores[best]

    def ask_next(self, user: Any, items: Any = None, N: int = 1, most_draws: int = 1000) -> pl.DataFrame:
        """Return the pairs to ask a user about next: those whose answer is expected to tell the most.

        The expected information of an answer about the parameters is ``H(mean p) - mean H(p)``, with p the draws of
        ``Phi(x)`` and H the entropy of a yes or no: an answer tells much when the model is unsure because it does not
        know, not because the user is indifferent.

        Parameters
        ----------
        user
            An id.
        items
            Ids to choose from; None means all, which for many items takes time and memory by their square.
        N
            How many pairs.
        most_draws
            How many draws are used.

        Returns
        -------
        polars.DataFrame
            Most informative first: ``item``, ``rival``, ``bits``, and ``probability``, the chance that the item wins.
        """
        rows = self._item_rows(items)
        if len(rows) < 2:
            raise ValueError(f"a question needs two items, and {len(rows)} are given")
        row = self._one_user(user)
        draws = self.drawn.at_most(check_count("most_draws", most_draws))
        one, other = np.triu_indices(len(rows), 1)
        bits, chance = np.empty(len(one)), np.empty(len(one))
        step = max(1, _CHUNK // len(draws))
        for start in range(0, len(one), step):
            part = slice(start, start + step)
            p = ndtr(draws.preference(row, rows[one[part]], rows[other[part]]))
            chance[part] = p.mean(axis=0)
            bits[part] = _entropy(chance[part]) - _entropy(p).mean(axis=0)
        best = np.argsort(-bits, kind="stable")[: check_count("N", N)]
        ids = self.item_ids.array
        return pl.DataFrame(
            {
                "item": ids[rows[one[best]]],
                "rival": ids[rows[other[best]]],
                "bits": bits[best],
                "probability": chance[best],
            }
        )


def _entropy(p: Floats) -> Floats:
    """Entropy of a yes or no, in bits."""
    return np.asarray((entr(p) + entr(1 - p)) / np.log(2))
