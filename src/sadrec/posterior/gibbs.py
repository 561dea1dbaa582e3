"""The full posterior of SAD under a probit model."""

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtr

from sadrec import _check
from sadrec._files import fingerprint
from sadrec._record import locked
from sadrec._types import Doubles, Positions
from sadrec.data import Interactions, as_feedback
from sadrec.data.ids import Ids, is_scalar_id
from sadrec.models.base import Estimator, documented
from sadrec.models.sad import SAD, Scored, known_to
from sadrec.posterior import cycles as drawn_cycles
from sadrec.posterior import diagnostics, lists, predictive
from sadrec.posterior.draws import Draws, Quantity
from sadrec.posterior.factors import aligned, mean_factors
from sadrec.posterior.files import DrawFiles, load_posterior, save_posterior
from sadrec.posterior.layout import ByUser
from sadrec.posterior.sampling import bytes_needed, check_memory, sample
from sadrec.posterior.settings import GibbsSettings, SamplerSettings, resolved
from sadrec.posterior.triples import as_pairs, as_triples
from sadrec.ranking import Parameters
from sadrec.ranking.alignment import Factors
from sadrec.ranking.cycles import Cycle, CyclicTriads, cycles, cyclic_triads
from sadrec.ranking.intransitivity import intransitivity
from sadrec.ranking.parameters import average_user
from sadrec.ranking.rank import Method, Ranking, rank_margins
from sadrec.ranking.top_n import best_of
from sadrec.ranking.tournament import Tournament
from sadrec.ranking.vectors import item_vectors, user_vectors

logger = logging.getLogger("sadrec")

LOGIT_PER_PROBIT = 1.702
"""Phi(x) and sigmoid(1.702 x) differ by less than 0.01 everywhere (Haley, 1952)."""
MISSED = 0.1
"""Share of the squared size of the mean preferences that a mean model may miss without a warning."""
_CHUNK = 1 << 23
"""How many numbers are held at a time where many are asked for."""
_ALIGNED = 1000
"""How many draws are aligned."""


@documented
class GibbsSAD(SamplerSettings, Estimator):
    """The posterior of SAD, by Gibbs sampling: not one answer but how sure it is.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j`` and ``P(i over j) = Phi(x_uij)``. Priors are
    independent: ``xi ~ N(user_mean, user_scale^2)``, ``eta ~ N(0, item_scale^2)``,
    ``tau ~ N(rival_mean, rival_scale^2)`` restricted to tau >= 0, and ``b ~ N(a m, s^2)`` around a line in the
    logarithm m of how many different items an item met, a and s learnt.

    {settings}

    Notes
    -----
    The verbs are those of :class:`~sadrec.SAD`, with these differences:

    - :meth:`preference` and :meth:`intransitivity` return draws, one number per draw; every other verb of SAD returns
      what SAD returns, of posterior means.
    - Preferences, margins and scores are in units of the probit. :meth:`tournament`, :meth:`cycles` and the models
      (:meth:`mean_model`, :meth:`draw_model`) are in log-odds, as SAD is: 1.702 times as large.
    - ``user=None`` is the average user, with the mean vector of all users. ``items=None`` means all items.
    - ``level`` is the probability content of an interval, from which as much is left out on either side.
    - What needs one set of factors (``explain``, ``similar_items``, ``fold_in``, ...) is asked of :meth:`mean_model`.

    Examples
    --------
    >>> import polars as pl
    >>> from sadrec import Comparisons
    >>> games = [("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")] * 12
    >>> frame = pl.DataFrame({"judge": ["ann"] * 36, "winner": [w for w, _ in games], "loser": [l for _, l in games]})
    >>> said = Comparisons.from_frame(frame, user="judge")
    >>> posterior = GibbsSAD(factors=2, draws=300, warmup=300, chains=2).fit(said)
    >>> posterior.cycle_probability("ann", ["rock", "scissors", "paper"]) > 0.99
    True
    >>> low, high = posterior.interval("ann", "rock", "scissors", 0.9)
    >>> 0 < low < high
    True
    """

    _learnt = ("drawn", "user_ids", "item_ids", "seen", "observed", "settings")
    drawn: Draws
    user_ids: Ids
    item_ids: Ids
    seen: Any
    observed: ByUser
    settings: GibbsSettings

    @property
    def state(self) -> Any:
        """Users, items and what was seen, as in the state of a SAD."""
        return SimpleNamespace(users=self.user_ids, items=self.item_ids, seen=self.seen)

    def _state(self) -> str:
        return f", {len(self.drawn):,} draws" if self.is_fitted else ", not fitted"

    # -- learning -----------------------------------------------------------------------------------------------------

    def memory(self, data: Any) -> dict[str, int]:
        """Say beforehand how many bytes ``fit`` will take: "draws" for what it keeps, "running" beside that."""
        data = as_feedback(data)
        settings = resolved(self)
        if isinstance(data, Interactions):
            triples = data.matrix.nnz * settings.negatives
        else:
            triples = len(data) if data.weight is None else int(np.ceil(data.weight).sum())
        return bytes_needed(settings, len(data.users), len(data.items), triples)

    def fit(
        self,
        data: Any,
        show_progress: bool = True,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 30.0,
    ) -> Self:
        """Sample the posterior given what people did or said, and return the object itself.

        Ctrl-C ends the run after the sweeps under way. The draws kept so far can then be used, and
        ``KeyboardInterrupt`` is raised.

        Parameters
        ----------
        data
            Comparisons; a weight of 3 is three answers, a fraction f one with the probability ``Phi(sqrt(f) x)``, which
            at x = 0 tells f times as much as a whole one. Or interactions (or a frame, a sparse matrix, a path), each
            of which is taken as preferred to ``negatives`` items the user never touched. That likelihood is made up,
            not observed: what comes out is a pseudo-posterior, and its intervals depend on ``negatives``.
        checkpoint
            A folder. Killed and run again with the same settings (or with more ``draws``), the run continues from there
            and ends with the same bits as an undisturbed one.
        checkpoint_seconds
            Write a checkpoint at most so often.
        """
        settings, threads = resolved(self), _check.threads(self.num_threads)
        _check.number(checkpoint_seconds, "checkpoint_seconds")
        data = as_feedback(data)
        users, items = data.user_ids, data.item_ids
        triples = as_triples(as_pairs(data, settings.negatives, settings.seed), len(users), len(items))
        if not len(triples):
            raise ValueError("all comparisons have the weight 0: there is nothing to learn from")
        check_memory(bytes_needed(settings, len(users), len(items), len(triples)))
        files = None
        if checkpoint is not None:
            identity = {name: value for name, value in settings.as_dict().items() if name != "draws"}
            identity["data"] = fingerprint(data.users, data.items, *triples.by_user[1:])
            files = DrawFiles(checkpoint, identity, checkpoint_seconds)
        with nullcontext() if checkpoint is None else locked(checkpoint):
            drawn, whole = sample(triples, settings, threads, files=files, show_progress=show_progress)
        if len(drawn):
            seen = data.matrix if isinstance(data, Interactions) else None
            self._hold(drawn, users, items, triples.by_user, seen, settings)
        if not whole:
            raise KeyboardInterrupt
        self._warn_if_apart()
        return self

    def _hold(self, drawn: Draws, users: Ids, items: Ids, observed: ByUser, seen: Any, settings: GibbsSettings) -> None:
        self.drawn, self.user_ids, self.item_ids, self.seen = drawn, users, items, seen
        self.observed, self.settings = observed, settings
        self.__dict__.pop("_aligned", None)

    def _warn_if_apart(self) -> None:
        """Say so when the chains do not agree."""
        if self.drawn.chains > 1 and self.drawn.per_chain >= 4:
            diagnosis = self.diagnose(200)
            if diagnosis.share_good < 0.95:
                logger.warning(
                    "the chains do not agree yet: R-hat is above %s for %.0f %% of preferences (see diagnose()); raise "
                    "warmup and draws",
                    diagnostics.GOOD,
                    100 * (1 - diagnosis.share_good),
                )

    # -- one item against another -------------------------------------------------------------------------------------

    def preference(self, user: Any, item: Any, rival: Any) -> Doubles:
        """Return draws of ``x_uij``, (draws, ...), chain after chain; the item wins with the probability ``Phi(x)``.

        Parameters
        ----------
        user, item, rival
            Ids; arrays of ids broadcast against each other. ``user=None`` is the mean over all users.
        """
        return self.drawn.preference(*self._rows(user, item, rival))

    def probability(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the probability that a user prefers an item to a rival: the posterior mean of ``Phi(x_uij)``.

        It is the chance that the next answer will be the item, all uncertainty counted in.
        """
        return self._mean(user, item, rival, "probability")

    def probability_beats(self, user: Any, item: Any, rival: Any) -> Any:
        """Return how sure it is that a user prefers an item to a rival at all: the probability that ``x_uij > 0``."""
        return self._mean(user, item, rival, "beats")

    def mean(self, user: Any, item: Any, rival: Any, of: Quantity = "preference") -> Any:
        """Return the posterior mean of a preference, or of its "probability"."""
        return self._mean(user, item, rival, _check.one_of(of, "of", ("preference", "probability")))

    def interval(
        self, user: Any, item: Any, rival: Any, level: float = 0.9, of: Quantity = "preference"
    ) -> tuple[Any, Any]:
        """Return the lower and the upper end of the interval that holds a preference, or its "probability"."""
        ends = _ends(level)
        probable = _check.one_of(of, "of", ("preference", "probability")) == "probability"
        u, i, j = self._rows(user, item, rival)
        drawn, u = self.drawn.of(u)
        rows = np.broadcast_arrays(u, i, j)
        shape, step = rows[0].shape, max(1, _CHUNK // len(self.drawn))
        flat = [side.ravel() for side in rows]
        parts = [
            np.quantile(drawn.preference(*(side[start : start + step] for side in flat)), ends, axis=0)
            for start in range(0, max(1, flat[0].size), step)
        ]
        numbers = np.concatenate(parts, axis=-1)  # a quantile of Phi(x) is Phi of the quantile
        low, high = ndtr(numbers) if probable else numbers
        return (float(low[0]), float(high[0])) if shape == () else (low.reshape(shape), high.reshape(shape))

    def margins(self, user: Any, items: Any, rivals: Any) -> Doubles:
        """Return the posterior mean margins of some items over some rivals for a user, (items, rivals)."""
        return self.drawn.margins(self._user(user), self._listed(items), self._listed(rivals))

    def scores(self, users: Any) -> Doubles:
        """Return the posterior mean of the mean margin of every item over the catalogue, (users, items)."""
        return self.drawn.mean_scores(np.atleast_1d(self.user_ids.positions(users)))

    # -- many items at once -------------------------------------------------------------------------------------------

    def ranking(self, user: Any = None, items: Any = None, level: float = 0.9) -> pl.DataFrame:
        """Rank items by their mean margin over each other, with intervals.

        Returns
        -------
        polars.DataFrame
            Best first: ``item``; ``score``, the posterior mean of the mean margin, with ``score_lower`` and
            ``score_upper``; ``rank``, with ``rank_lower`` and ``rank_upper``, the interval of the item's place among
            the draws; ``best``, the probability that it comes first.
        """
        _ends(level)
        return lists.ranking(self.drawn, self._user(user), self._distinct(items), self.items, level)

    def rank(self, user: Any = None, items: Any = None, method: Method = "margin", *, reference: Any = None) -> Ranking:
        """Order items for a user by their posterior mean margins; :meth:`ranking` says how sure each place is."""
        row, rows = self._user(user), self._distinct(items)
        if reference is not None and method != "margin":
            raise ValueError(f"reference is what the method 'margin' averages over; leave it out for {method!r}")
        if method == "liked" or (isinstance(reference, str) and reference == "liked"):
            against = np.empty(0, np.int64) if row is None or self.seen is None else self.seen[row].indices
            if not against.size:
                raise ValueError(f"user {user!r} was seen with nothing to compare with: use method='margin' alone")
        else:
            against = self._listed(reference) if method == "margin" else rows
        return rank_margins(self.drawn.margins(row, rows, against), method, labels=self.items[rows])

    def recommend(
        self,
        user: Any,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
        *,
        sample: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> Scored:
        """Return the best N items for a user, or for many users at once, by mean margin over the catalogue.

        Parameters
        ----------
        user, user_items, N, filter_already_liked_items, filter_items, items
            As for :meth:`sadrec.SAD.recommend`, as is what is returned. Comparisons leave out nothing.
        recalculate_user
            Not for a posterior: ask :meth:`mean_model`.
        sample
            False ranks by the posterior mean. True takes one draw from the posterior and ranks by it (Thompson
            sampling): an item comes first as often as it is probably the best, so that what is uncertain gets tried.
        random_state
            Chooses the draw; None takes a new one every time.
        """
        if recalculate_user:
            raise ValueError("recalculate_user needs one set of factors: ask mean_model().recommend(...)")
        if items is not None and filter_items is not None:
            raise ValueError("give items (the only ones to consider) or filter_items (to leave out), not both")
        N, one = _check.whole(N, "N"), is_scalar_id(user)
        users = np.atleast_1d(self.user_ids.positions([user] if one else user))
        known = known_to(self.seen, users, user_items, len(self.item_ids))
        draw = self.drawn[int(np.random.default_rng(random_state).integers(len(self.drawn)))] if sample else None
        answers = []
        step = max(1, _CHUNK // len(self.item_ids))
        for start in range(0, len(users), step):
            part = slice(start, start + step)
            asked = users[part]
            scores = user_vectors(draw, asked) @ item_vectors(draw).T if draw else self.drawn.mean_scores(asked)
            answers.append(
                best_of(
                    scores,
                    min(N, len(self.item_ids)) if one else N,
                    seen=None if known is None or not filter_already_liked_items else known[part],
                    allowed=None if items is None else self.item_ids.positions(items),
                    blocked=None if filter_items is None else self.item_ids.positions(filter_items),
                )
            )
        best = np.concatenate([rows for rows, _ in answers])
        ids, values = self.item_ids.named(best), np.concatenate([values for _, values in answers])
        if not one:
            return ids, values
        real = values[0] > -np.inf
        return ids[0][real], values[0][real]

    def ask_next(self, user: Any, items: Any = None, N: int = 1, most_draws: int = 1000) -> pl.DataFrame:
        """Return the pairs to ask a user about next: those whose answer is expected to tell the most.

        The expected information of an answer about the parameters is ``H(mean p) - mean H(p)``, with p the draws of
        ``Phi(x)`` and H the entropy of a yes or no: an answer tells much when the model is unsure because it does not
        know, not because the user is indifferent.

        Parameters
        ----------
        items
            Ids to choose from; None means all, which for many items takes time and memory by their square.

        Returns
        -------
        polars.DataFrame
            Most informative first: ``item``, ``rival``, ``bits``, and ``probability``, the chance that the item wins.
        """
        draws = self.drawn.at_most(_check.whole(most_draws, "most_draws", least=1))
        row = self.user_ids.one(user)
        return lists.ask_next(draws, row, self._distinct(items), self.items, _check.whole(N, "N", least=1))

    # -- cycles -------------------------------------------------------------------------------------------------------

    def tournament(self, user: Any = None, items: Any = None, N: int = 50) -> Tournament:
        """Let items play each other for a user, by posterior mean margins, in log-odds."""
        row, rows = self._user(user), self._distinct(items)
        if items is None:
            scores = self.drawn.scores(row, rows).mean(axis=0)
            rows = rows[np.argsort(-scores, kind="stable")[: _check.whole(N, "N")]]
        x = self.drawn.margins(row, rows, rows)
        return Tournament(self.items[rows], LOGIT_PER_PROBIT * (x - x.T) / 2)

    def cycles(self, user: Any = None, N: int = 50, *, items: Any = None, minimum: float = 0.0) -> list[Cycle]:
        """Find the cycles of a user's posterior mean preferences: see :meth:`sadrec.SAD.cycles`.

        The probabilities of its steps are those of the next answer (:meth:`probability`). How probable a cycle is,
        :meth:`credible_cycles` and :meth:`cycle_probability` tell.
        """
        return [
            replace(cycle, probabilities=self.probability(user, cycle.path, np.roll(cycle.path, -1)))
            for cycle in cycles(self.tournament(user, items, N), minimum)
        ]

    def cyclic_triads(self, user: Any = None, N: int = 50, *, items: Any = None, strongest: int = 10) -> CyclicTriads:
        """Count the cyclic triples of a user's posterior mean preferences: see :meth:`sadrec.SAD.cyclic_triads`."""
        return cyclic_triads(self.tournament(user, items, N), strongest)

    def cyclic_triad_counts(self, user: Any = None, items: Any = None) -> Positions:
        """Return draws of the number of cycles of three among some items.

        Where many items are nearly equal, some cycle is in every draw without any one being probable: see
        :meth:`credible_cycles`.
        """
        return drawn_cycles.cyclic_triad_counts(self.drawn, self._user(user), self._distinct(items))

    def cycle_probability(self, user: Any, items: Any) -> float:
        """Return the probability that a cycle is real: each item preferred to the next, and the last to the first."""
        return drawn_cycles.cycle_probability(self.drawn, self._user(user), self._distinct(items))

    def credible_cycles(
        self, user: Any = None, items: Any = None, least: float = 0.5, N: int | None = 20
    ) -> list[drawn_cycles.CredibleCycle]:
        """Return the cycles of three items that are probably real, the most probable first, at most N.

        Parameters
        ----------
        items
            Ids to look among; None means all, at most 400.
        least
            Smallest probability worth a mention.
        """
        least, N = _check.share(least, "least"), None if N is None else _check.whole(N, "N", least=1)
        credible = drawn_cycles.credible_cycles(self.drawn, self._user(user), self._distinct(items), least, N)
        return [replace(cycle, path=tuple(self.items[list(cycle.path)].tolist())) for cycle in credible]

    def intransitivity(self, user: Any = None) -> Doubles:
        """Return draws of the share of a user's preferences that no scores can explain, in [0, 1]."""
        row = self._user(user)
        return np.array([float(intransitivity(one, average_user(one) if row is None else row)) for one in self.drawn])

    # -- rival factors ------------------------------------------------------------------------------------------------

    def aligned_factors(self) -> Factors:
        """Return draws of xi, eta and tau, (draws, rows, factors), that can be compared from draw to draw.

        Factors are matched to those of the last draw, and each is written in that of its equivalent forms in which most
        of tau is near 1. At most 1,000 draws; their preferences are those of the sampler, but for the bias, which is
        left out. tau may fall below 0 here.
        """
        return self._aligned

    @cached_property
    def _aligned(self) -> Factors:
        return aligned(self.drawn.at_most(_ALIGNED))

    def rival_differs(self, item: Any, by: float = 0.5, factor: int | None = None) -> Any:
        """Return the probability that tau of an item differs from 1 by more than ``by``, in a factor or in any.

        tau as the sampler draws it is not identified: every factor has many forms with the same preferences. Asked is
        the form in which most of tau is near 1 (see :meth:`aligned_factors`): a difference there is one that another
        form of the factor could only exchange for more of them. The probability that tau is exactly 1 is zero under a
        continuous prior, hence ``by``.
        """
        _check.number(by, "by")
        rows, tau = self.item_ids.positions(item), self.aligned_factors()[2]
        differs = np.abs(tau[:, np.atleast_1d(rows)] - 1) > by
        if factor is not None:
            differs = differs[:, :, [_check.whole(factor, "factor", most=tau.shape[2] - 1)]]
        share = differs.any(axis=2).mean(axis=0)
        return float(share[0]) if np.ndim(rows) == 0 else share

    def rival_interval(self, item: Any, level: float = 0.9) -> tuple[Doubles, Doubles]:
        """Return the lower and upper ends of intervals of tau of an item, one per aligned factor."""
        low, high = np.quantile(self.aligned_factors()[2][:, self.item_ids.positions(item)], _ends(level), axis=0)
        return low, high

    # -- whether to trust the draws -----------------------------------------------------------------------------------

    def observed_pairs(self, number: int | None = None, seed: int = 0) -> tuple[NDArray[np.int32], ...]:
        """Return rows (user, winner, loser) of comparisons that were learnt from: all, or a random choice."""
        rows = np.arange(len(self.observed.user))
        if number is not None and _check.whole(number, "number", least=1) < len(rows):
            rows = np.sort(np.random.default_rng(seed).choice(len(rows), number, replace=False))
        return self.observed.user[rows], self.observed.winner[rows], self.observed.loser[rows]

    def diagnose(self, number: int | None = 500, seed: int = 0) -> diagnostics.Diagnosis:
        """Return R-hat and effective sample size of the preferences in some of the comparisons learnt from."""
        return diagnostics.diagnose(self.drawn, *self.observed_pairs(number, seed))

    def predictive_check(
        self,
        statistics: Mapping[str, predictive.Statistic] | None = None,
        number: int = 200,
        seed: int = 0,
        level: float = 0.9,
    ) -> pl.DataFrame:
        """Compare what was observed with data sets simulated from the posterior.

        The same users compare the same pairs again; the outcomes come from one draw per data set. A p-value near 0 or 1
        means that the model does not produce data like that which was observed, in that respect. Fractions of
        comparisons (the halves of ties) are left out: no data set has them.

        Parameters
        ----------
        statistics
            Functions of (user, winner, loser), arrays of rows, returning a number. None takes these:
            ``log_likelihood`` of the comparisons under the draw; ``upsets``, the share won by the side the draw favours
            less; ``user_upsets``, the standard deviation of the users' shares of upsets; ``item_spread``, the standard
            deviation of the items' shares of wins; ``crowd_cycles``, the number of cycles of three items in the
            majority of all answers; ``user_cycles``, the same inside each user's own answers, added up.

        Returns
        -------
        polars.DataFrame
            A row per statistic: ``observed`` (the mean over draws where it depends on the draw), ``replicated`` with
            ``lower`` and ``upper``, and ``p_value``, the share of data sets whose value is at least the observed one
            (equal ones counted half).
        """
        _ends(level)
        draws = self.drawn.at_most(_check.whole(number, "number", least=1))
        return predictive.predictive_check(draws, self.observed, statistics, seed, level)

    def to_arviz(self, pairs: Any = None, number: int = 200, seed: int = 0) -> Any:
        """Return an ArviZ ``InferenceData`` with draws of preferences, which are identified; the factors are not.

        Parameters
        ----------
        pairs
            Ids or sequences of ids (users, items, rivals), users None for the average user. None: some of the
            comparisons that were learnt from.

        Returns
        -------
        arviz.InferenceData
            With ``preference`` and ``probability``, (chain, draw, comparison), and ``prior_scale``.
        """
        rows: tuple[Any, ...] = self.observed_pairs(number, seed) if pairs is None else self._rows(*pairs)
        average = rows[0] is None
        user, item, rival = np.broadcast_arrays(*map(np.atleast_1d, (0 if average else rows[0], *rows[1:])))
        who = np.full(len(user), "everybody") if average else self.users[user]
        asked = zip(who, self.items[item], self.items[rival], strict=True)
        names = [f"{one}: {i} over {j}" for one, i, j in asked]
        return diagnostics.to_arviz(self.drawn, None if average else user, item, rival, names)

    def trace_plot(self, user: Any, item: Any, rival: Any, path: str | Path | None = None) -> Any:
        """Draw the chains of one preference, sweep by sweep, and its distribution in each; return the figure."""
        x = self.preference(user, item, rival)
        if x.ndim > 1:
            raise ValueError(f"a trace shows one preference, not {x[0].size}: give one user, one item and one rival")
        title = f"{'everybody' if user is None else user}: {item} over {rival}"
        return diagnostics.trace_plot(x.reshape(self.drawn.chains, -1), title, path)

    # -- models and files ---------------------------------------------------------------------------------------------

    def mean_model(self) -> SAD:
        """Return one SAD model that stands for all draws: its preferences are close to their posterior means.

        They are in log-odds, as those of any SAD model: the probit means times 1.702, for which ``sigmoid`` and ``Phi``
        agree to 0.01. Everything a model can do works on it. What its probabilities leave out is the uncertainty:
        :meth:`probability` of the posterior is nearer to one half.
        """
        (xi, eta, tau), missed = mean_factors(self.drawn)
        logger.info("the mean model misses %.2g of the squared size of the posterior mean preferences", missed)
        if missed > MISSED:
            logger.warning(
                "the mean model misses %.0f %% of the squared size of the posterior mean preferences, to which no "
                "model with %d factors comes close: ask the posterior itself, or fit more data",
                100 * missed,
                self.settings.factors,
            )
        bias = self.drawn.bias
        return self._model(Parameters(xi, eta, tau, None if bias is None else bias.mean(axis=(0, 1), dtype=np.float64)))

    def draw_model(self, draw: int) -> SAD:
        """Return the model of one draw, numbered as in :meth:`preference`, in log-odds like :meth:`mean_model`."""
        return self._model(self.drawn[_check.whole(draw, "draw", most=len(self.drawn) - 1)])

    def _model(self, parameters: Parameters) -> SAD:
        xi, bias = parameters.user_factors * np.float32(LOGIT_PER_PROBIT), parameters.item_bias
        bias = None if bias is None else bias * np.float32(LOGIT_PER_PROBIT)
        known = {"users": self.users, "items": self.items, "seen": self.seen}
        eta = np.ascontiguousarray(parameters.item_factors)
        return SAD.from_factors(xi, eta, parameters.rival_factors, bias, **known)

    def save(self, path: str | Path) -> None:
        """Write draws, ids, settings and what was observed to a file; an old file stays until all is written."""
        known = self.drawn, self.user_ids, self.item_ids, self.observed, self.seen, self.settings
        save_posterior(path, *known, self.num_threads)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote; nothing in it is executed.

        Another, damaged or newer file raises a ``ModelFileError``.
        """
        drawn, users, items, observed, seen, settings, threads = load_posterior(path)
        given = settings.as_dict()
        posterior = cls(random_state=given.pop("seed"), num_threads=threads, **given)
        posterior._hold(drawn, users, items, observed, seen, settings)
        return posterior

    # -- ids ----------------------------------------------------------------------------------------------------------

    def _user(self, user: Any) -> int | None:
        return None if user is None else self.user_ids.one(user)

    def _listed(self, items: Any) -> Positions:
        if items is None:
            return np.arange(len(self.item_ids))
        if is_scalar_id(items):
            raise TypeError(f"items must be a sequence of ids, not {items!r}: put a single id into a list")
        return np.asarray(self.item_ids.positions(items))

    def _distinct(self, items: Any) -> Positions:
        rows = self._listed(items)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("an item is named twice: give distinct items")
        return rows

    def _rows(self, user: Any, item: Any, rival: Any) -> tuple[Any, Any, Any]:
        users = None if user is None else self.user_ids.positions(user)
        return users, self.item_ids.positions(item), self.item_ids.positions(rival)

    def _mean(self, user: Any, item: Any, rival: Any, of: Quantity) -> Any:
        answer = self.drawn.mean(*self._rows(user, item, rival), of, _check.threads(self.num_threads))
        return float(answer) if answer.ndim == 0 else answer


def _ends(level: float) -> tuple[float, float]:
    """Return between which quantiles a share ``level`` lies, as much being left out on either side."""
    tail = (1 - _check.share(level, "level", inside=True)) / 2
    return tail, 1 - tail
