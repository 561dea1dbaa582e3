"""The full posterior of SAD under a probit model."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import polars as pl

from sadrec._core import check
from sadrec._core.files import fingerprint
from sadrec._core.types import Doubles, Positions
from sadrec.data import Interactions, as_feedback
from sadrec.data.ids import Ids, is_scalar_id
from sadrec.models.base import documented
from sadrec.models.sad import SAD
from sadrec.models.state import State
from sadrec.posterior import cycles as drawn_cycles
from sadrec.posterior import diagnostics, predictive
from sadrec.posterior.belief import Drawn, in_log_odds
from sadrec.posterior.chain import ByUser
from sadrec.posterior.draws import Draws
from sadrec.posterior.files import load_posterior, save_posterior
from sadrec.posterior.sampling import Sampling, bytes_needed, check_memory
from sadrec.posterior.settings import GibbsSettings, SamplerSettings, resolved
from sadrec.posterior.triples import as_pairs, as_triples
from sadrec.ranking import Parameters
from sadrec.ranking.belief import Point
from sadrec.ranking.results import Results
from sadrec.training.checkpoint import LocalCheckpoints
from sadrec.training.loop import run
from sadrec.training.sgd.given import Pairs
from sadrec.training.variational.counts import count

logger = logging.getLogger("sadrec")

MISSED = 0.1
"""Share of the squared size of the mean preferences that a mean model may miss without a warning."""


@documented
class GibbsSAD(SamplerSettings, SAD):  # type: ignore[misc]  # settings of its own, in place of SAD's
    """The posterior of SAD by Gibbs sampling, with the uncertainty of every answer.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) + b_i - b_j`` and ``P(i over j) = Phi(x_uij)``. Priors are
    independent: ``xi ~ N(user_mean, user_scale^2)``, ``eta ~ N(0, item_scale^2)``,
    ``tau ~ N(rival_mean, rival_scale^2)`` restricted to tau >= 0, and ``b ~ N(a m, s^2)`` around a line in the
    logarithm m of how many different items an item met, a and s learnt.

    {settings}

    Notes
    -----
    The verbs are those of :class:`~sadrec.SAD`, and answer from all draws: ``preference`` is the posterior mean, in
    log-odds (1.702 times the probit), ``deviation`` the standard deviation of the draws, ``probability`` the mean of
    ``Phi(x)``. :meth:`preference_draws` has the draws themselves. Factors, vectors, likeness and visitors are those of
    :meth:`mean_model`. ``level`` is the probability content of an interval, from which as much is left out on either
    side.

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
    >>> 0 < low < posterior.preference("ann", "rock", "scissors") < high
    True
    """

    def _repr_end(self) -> str:
        return f", {len(self.drawn):,} draws" if self.is_fitted else ", not fitted"

    # -- learning -----------------------------------------------------------------------------------------------------

    def memory(self, data: Any) -> dict[str, int]:
        """Estimate the bytes that ``fit`` will take: "draws" that it keeps, and "running" in addition."""
        data = as_feedback(data)
        settings = resolved(self)
        if isinstance(data, Interactions):
            triples = data.matrix.nnz * settings.negatives
        else:
            triples = len(data) if data.weight is None else int(np.ceil(data.weight).sum())
        return bytes_needed(settings, len(data.users), len(data.items), triples)

    def fit(  # type: ignore[override]  # the sampler takes one kind of data, and no features
        self,
        data: Any,
        show_progress: bool = True,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 30.0,
    ) -> Self:
        """Sample the posterior given interactions or comparisons, and return the model.

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
        settings, threads = resolved(self), check.threads(self.num_threads)
        check.number(checkpoint_seconds, "checkpoint_seconds")
        data = as_feedback(data)
        shape = len(data.users), len(data.items)
        triples = as_triples(as_pairs(data, settings.negatives, settings.seed), *shape)
        if not len(triples):
            raise ValueError("all comparisons have the weight 0: there is nothing to learn from")
        check_memory(bytes_needed(settings, *shape, len(triples)))
        checkpoints = None
        if checkpoint is not None:
            identity = {name: value for name, value in settings.as_dict().items() if name != "draws"}
            identity["data"] = fingerprint(data.users, data.items, *triples.by_user[1:])
            checkpoints = LocalCheckpoints(checkpoint, identity, checkpoint_seconds)
        step, interrupted = Sampling(triples, settings, threads), None
        try:
            run(step, checkpoints=checkpoints, show_progress=show_progress, title="sampling")
        except KeyboardInterrupt as error:
            interrupted = error
        finally:
            step.close()
        if len(drawn := step.learnt()):
            seen = data.matrix if isinstance(data, Interactions) else None
            self._hold(drawn, triples.by_user, data.user_ids, data.item_ids, seen, settings)
        if interrupted is not None:
            raise interrupted
        self._warn_if_apart()
        return self

    def _hold(self, drawn: Draws, observed: ByUser, users: Ids, items: Ids, seen: Any, settings: GibbsSettings) -> None:
        """Set the state to the result of a fit."""
        belief, results = Drawn(drawn, observed, check.threads(self.num_threads)), None
        if seen is None:  # comparisons that were stated
            pairs = Pairs(observed.user, observed.winner, observed.loser, observed.root**2)
            results = Results.of(count(pairs, len(items)), None, len(items))
        self.state = State(belief, users, items, seen, settings, results=results)

    def _warn_if_apart(self) -> None:
        """Warn if the chains do not agree."""
        if self.drawn.chains > 1 and self.drawn.per_chain >= 4 and (share := self.diagnose(200).share_good) < 0.95:
            logger.warning(
                "the chains do not agree yet: R-hat is above %s for %.0f %% of preferences (see diagnose()); raise "
                "warmup and draws",
                diagnostics.GOOD,
                100 * (1 - share),
            )

    def partial_fit(self, *data: Any, **options: Any) -> NoReturn:
        """Raise a ValueError: draws are of all the data."""
        raise ValueError("draws are of all the data: fit all of it, old and new")

    @classmethod
    def from_factors(cls, *given: Any, **options: Any) -> NoReturn:
        """Raise a ValueError: one set of parameters is no posterior."""
        raise ValueError("one set of parameters is no posterior: use SAD.from_factors")

    # -- draws --------------------------------------------------------------------------------------------------------

    @property
    def _belief(self) -> Drawn:
        belief = self.state.belief
        if not isinstance(belief, Drawn):
            raise TypeError("this model has no draws: ask the GibbsSAD that it comes from")
        return belief

    @property
    def drawn(self) -> Draws:
        """The draws of the parameters, in units of the probit."""
        return self._belief.drawn

    @property
    def settings(self) -> GibbsSettings:  # type: ignore[override]
        """The settings that ``fit`` used."""
        used: GibbsSettings = self.state.settings
        return used

    def preference_draws(self, user: Any, item: Any, rival: Any) -> Doubles:
        """Return draws of preferences in log-odds, (draws, ...), chain after chain; ids as for ``preference``."""
        belief, *rows = self.state.triple(user, item, rival)
        return np.asarray(belief.draws(*rows))

    def probability_beats(self, user: Any, item: Any, rival: Any) -> Any:
        """Return the probability that a user prefers an item to a rival at all: ``x_uij > 0``."""
        belief, *rows = self.state.triple(user, item, rival)
        share = belief.beats(*rows)
        return float(share) if share.ndim == 0 else share

    def interval(self, user: Any, item: Any, rival: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the credible interval of a preference."""
        ends, (belief, *rows) = _ends(level), self.state.triple(user, item, rival)
        low, high = belief.summarised(lambda x: np.quantile(x, ends, axis=0), *rows)
        return (float(low), float(high)) if low.ndim == 0 else (low, high)

    def cycle_probability(self, user: Any, items: Any) -> float:
        """Return the probability that a cycle is real: each item preferred to the next, and the last to the first."""
        (belief, row), path = self._one(user), self.state.items.distinct(items)
        if len(path) < 3:
            raise ValueError(f"a cycle has at least three items, not {len(path)}")
        return belief.together(row, path, np.roll(path, -1))

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
        least, N = check.share(least, "least"), None if N is None else check.whole(N, "N", least=1)
        belief, row = self._one(user)
        credible = drawn_cycles.credible_cycles(belief.drawn, row, self._rows(items), least, N)
        return [replace(cycle, path=tuple(self.items[list(cycle.path)].tolist())) for cycle in credible]

    def rival_differs(self, item: Any, by: float = 0.5, factor: int | None = None) -> Any:
        """Return the probability that tau of an item differs from 1 by more than ``by``, in a factor or in any.

        tau as the sampler draws it is not identified: every factor has many forms with the same preferences. The
        answer is about the form in which most of tau is near 1 (``state.belief.aligned``). In other forms with the same
        preferences more entries differ from 1. The probability that tau is exactly 1 is zero under a
        continuous prior, hence ``by``.
        """
        check.number(by, "by")
        rows, tau = self.state.items.positions(item), self._belief.aligned[2]
        differs = np.abs(tau[:, np.atleast_1d(rows)] - 1) > by
        if factor is not None:
            differs = differs[:, :, [check.whole(factor, "factor", most=tau.shape[2] - 1)]]
        share = differs.any(axis=2).mean(axis=0)
        return float(share[0]) if is_scalar_id(item) else share

    # -- whether to trust the draws -----------------------------------------------------------------------------------

    def diagnose(self, number: int | None = 500, seed: int = 0) -> diagnostics.Diagnosis:
        """Return R-hat and effective sample size of the preferences in some of the comparisons learnt from."""
        return diagnostics.diagnose(self.drawn, *predictive.some_observed(self._belief.observed, number, seed))

    def predictive_check(
        self,
        statistics: Mapping[str, predictive.Statistic] | None = None,
        number: int = 200,
        seed: int = 0,
        level: float = 0.9,
    ) -> pl.DataFrame:
        """Compare what was observed with data sets simulated from the posterior.

        The same users compare the same pairs again; the outcomes come from one draw per data set. A p-value near 0 or 1
        means: data simulated from the model does not have this value of the statistic. Fractions of
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
        draws = self.drawn.at_most(check.whole(number, "number", least=1))
        return predictive.predictive_check(draws, self._belief.observed, statistics, seed, level)

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
        belief, users = self._belief, self.users
        rows: list[Any] = [*predictive.some_observed(belief.observed, number, seed)]
        if pairs is not None:
            belief, *rows = self.state.triple(*pairs)
            users = users if pairs[0] is not None else np.array(["everybody"])
        user, item, rival = np.broadcast_arrays(*map(np.atleast_1d, rows))
        of = zip(users[user], self.items[item], self.items[rival], strict=True)
        return diagnostics.to_arviz(belief.drawn, user, item, rival, [f"{one}: {i} over {j}" for one, i, j in of])

    # -- models and files ---------------------------------------------------------------------------------------------

    def mean_model(self) -> SAD:
        """Return one SAD model that stands for all draws: its preferences are close to their posterior means.

        What its probabilities leave out is the uncertainty: ``probability`` of the posterior is nearer to one half.
        """
        parameters, missed = self._belief.mean_model
        logger.info("the mean model misses %.2g of the squared size of the posterior mean preferences", missed)
        if missed > MISSED:
            logger.warning(
                "the mean model misses %.0f %% of the squared size of the posterior mean preferences, to which no "
                "model with %d factors comes close: ask the posterior itself, or fit more data",
                100 * missed,
                self.settings.factors,
            )
        return self._model(parameters)

    def draw_model(self, draw: int) -> SAD:
        """Return the model of one draw, numbered as in :meth:`preference_draws`.

        A list of a draw taken at random is Thompson sampling: an item comes first as often as it is probably the best,
        so that what is uncertain gets tried.
        """
        return self._model(in_log_odds(self.drawn[check.whole(draw, "draw", most=len(self.drawn) - 1)]))

    def _model(self, parameters: Parameters) -> SAD:
        return self._of(replace(self.state, belief=Point(parameters), settings=None))

    def _of(self, state: State) -> SAD:
        """Return a model without draws."""
        model = SAD(factors=state.parameters.n_factors, num_threads=self.num_threads)
        model.state = state
        return model

    def save(self, path: str | Path) -> None:
        """Write draws, ids, settings and what was observed to a file; an old file stays until all is written."""
        state, belief = self.state, self._belief
        parts = belief.drawn, state.users, state.items, belief.observed, state.seen, self.settings
        save_posterior(path, *parts, self.num_threads)

    @classmethod
    def load(cls, path: str | Path) -> Self:  # type: ignore[override]
        """Read a file that :meth:`save` wrote; nothing in it is executed.

        Another, damaged or newer file raises a ``ModelFileError``.
        """
        drawn, users, items, observed, seen, settings, threads = load_posterior(path)
        given = settings.as_dict()
        posterior = cls(random_state=given.pop("seed"), num_threads=threads, **given)
        posterior._hold(drawn, observed, users, items, seen, settings)
        return posterior

    # -- ids ----------------------------------------------------------------------------------------------------------

    def _one(self, user: Any) -> tuple[Drawn, int]:
        """Return the belief that answers for one user, and the user's row in it; None is the average user."""
        return (self._belief.average, 0) if user is None else (self._belief, self.state.users.one(user))

    def _rows(self, items: Any) -> Positions:
        ids = self.state.items
        return np.arange(len(ids)) if items is None else ids.distinct(items)


def _ends(level: float) -> tuple[float, float]:
    """Return the two quantiles of a central interval with probability ``level``."""
    tail = (1 - check.share(level, "level", inside=True)) / 2
    return tail, 1 - tail
