"""The full posterior of SAD under a probit model."""

import inspect
import logging
from pathlib import Path
from typing import Any, Self

import numpy as np

from sadrec._files import fingerprint
from sadrec.data import Comparisons, Interactions, as_interactions
from sadrec.data.ids import IdArray, Ids
from sadrec.models import SAD, NotFittedError
from sadrec.posterior.checkpoints import DrawFiles
from sadrec.posterior.cycles import CycleQuestions
from sadrec.posterior.diagnostics import GOOD
from sadrec.posterior.files import load_posterior, save_posterior
from sadrec.posterior.layout import ByUser
from sadrec.posterior.mean import mean_factors
from sadrec.posterior.pairs import as_pairs
from sadrec.posterior.predictive import PredictiveChecks
from sadrec.posterior.questions import LOGIT_PER_PROBIT, ListQuestions, PairQuestions
from sadrec.posterior.rivals import RivalQuestions
from sadrec.posterior.sampling import bytes_needed, check_memory, sample
from sadrec.posterior.settings import GibbsSettings, Scale, is_number
from sadrec.posterior.triples import as_triples

logger = logging.getLogger("sadrec")

MISSED = 0.1
"""Share of the squared size of the mean preferences that a mean model may miss without a warning."""
_FITTED = ("drawn", "user_ids", "item_ids", "seen", "observed", "settings", "_observed_user", "users", "items")


class GibbsSAD(PairQuestions, ListQuestions, CycleQuestions, RivalQuestions, PredictiveChecks):
    """The posterior of SAD, by Gibbs sampling: not one answer but how sure it is.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih)`` and ``P(i over j) = Phi(x_uij)``, with independent priors
    ``xi ~ N(user_mean, user_scale^2)``, ``eta ~ N(0, item_scale^2)`` and ``tau ~ N(rival_mean, rival_scale^2)``
    restricted to tau >= 0.

    Parameters
    ----------
    factors
        The length k of the vectors.
    draws
        How many draws each chain keeps.
    warmup
        Sweeps before the first draw is kept.
    chains
        Independent runs, from different starts; several are needed to see whether they agree.
    thin
        Keep every thin-th sweep.
    user_scale, item_scale, rival_scale
        Standard deviations of the prior: numbers (the paper's are 1), or "learn", which gives a scale a half-normal
        prior with scale 1 of its own and samples it with the rest. ``rival_scale=0`` holds tau at ``rival_mean``: the
        posterior of BPR.
    user_mean
        0 expects nothing of people in advance; 1 expects them to agree, each differing from all by ``user_scale``;
        "learn" gives every factor a mean of its own, N(0, 1) in advance.
    rival_mean
        1 expects tau to be 1, as the paper's penalty does; 0 is what its appendix writes.
    negatives
        For interactions: how many untouched items each is compared with (drawn once, before the first sweep).
    random_state
        A whole number, a numpy generator, or None for a seed from the operating system.
    num_threads
        0 means all cores. The draws are the same, bit by bit, for any number.

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

    _observed_user: Any

    def __init__(
        self,
        factors: int = 8,
        draws: int = 1000,
        warmup: int = 1000,
        chains: int = 4,
        thin: int = 1,
        *,
        user_scale: Scale = "learn",
        item_scale: Scale = "learn",
        rival_scale: Scale = "learn",
        user_mean: Scale = "learn",
        rival_mean: float = 1.0,
        negatives: int = 1,
        random_state: int | np.random.Generator | None = 0,
        num_threads: int = 0,
    ):
        self.factors = factors
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.thin = thin
        self.user_scale = user_scale
        self.item_scale = item_scale
        self.rival_scale = rival_scale
        self.user_mean = user_mean
        self.rival_mean = rival_mean
        self.negatives = negatives
        self.random_state = random_state
        self.num_threads = num_threads

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as they were given (scikit-learn's convention)."""
        return {name: getattr(self, name) for name in inspect.signature(GibbsSAD.__init__).parameters if name != "self"}

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(GibbsSAD.__init__).parameters.items()}
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        state = f", {len(self.drawn):,} draws" if self.fitted else ", not fitted"
        return f"<GibbsSAD({given}){state}>"

    @property
    def fitted(self) -> bool:
        """Whether there are draws to ask."""
        return "drawn" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        # Only reached when an attribute is missing: before fit, these are.
        if name in _FITTED:
            raise NotFittedError("this GibbsSAD has no draws yet: call fit first")
        raise AttributeError(f"GibbsSAD has no attribute {name!r}")

    def memory(self, data: Any) -> dict[str, int]:
        """Say beforehand how many bytes ``fit`` will take: "draws" for what it keeps, "running" beside that.

        Parameters
        ----------
        data
            As for :meth:`fit`.
        """
        data = data if isinstance(data, Comparisons) else as_interactions(data)
        settings = self._resolved()
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
        show_progress
            Whether to show a progress bar on a terminal.
        checkpoint
            A folder. Killed and run again with the same settings (or with more ``draws``), the run goes on from there
            and ends with the same bits as an undisturbed one.
        checkpoint_seconds
            Write a checkpoint at most so often.

        Raises
        ------
        ValueError
            For settings out of range, and when the draws would not fit into memory.
        """
        settings = self._resolved()
        if isinstance(self.num_threads, bool) or not isinstance(self.num_threads, int) or self.num_threads < 0:
            raise ValueError(f"num_threads must be 0 (all cores) or more, not {self.num_threads!r}")
        if not is_number(checkpoint_seconds) or checkpoint_seconds < 0:
            raise ValueError(f"checkpoint_seconds must be a number, 0 or more, not {checkpoint_seconds!r}")
        data = data if isinstance(data, Comparisons) else as_interactions(data)
        user, winner, loser, weight = as_pairs(data, settings.negatives, settings.seed)
        triples = as_triples(user, winner, loser, len(data.users), len(data.items), weight)
        if not len(triples):
            raise ValueError("all comparisons have the weight 0: there is nothing to learn from")
        check_memory(bytes_needed(settings, triples.users, triples.items, len(triples)))
        files = None
        if checkpoint is not None:
            identity = {name: value for name, value in settings.as_dict().items() if name != "draws"}
            identity["data"] = fingerprint(
                data.users,
                data.items,
                triples.user,
                triples.by_user.winner,
                triples.by_user.loser,
                triples.by_user.root,
            )
            files = DrawFiles(checkpoint, identity, checkpoint_seconds)
        drawn, whole = sample(triples, settings, self.num_threads, files=files, show_progress=show_progress)
        if len(drawn):
            seen = data.matrix if isinstance(data, Interactions) else None
            self._hold(drawn, data.user_ids, data.item_ids, triples.user, triples.by_user, seen, settings)
        if not whole:
            raise KeyboardInterrupt
        self._warn_if_apart()
        return self

    def _hold(
        self, drawn: Any, users: Ids, items: Ids, user: Any, observed: ByUser, seen: Any, settings: GibbsSettings
    ) -> None:
        self.drawn, self.user_ids, self.item_ids, self.seen = drawn, users, items, seen
        self.observed, self._observed_user, self.settings = observed, user, settings
        self.__dict__.pop("_aligned", None)

    def _warn_if_apart(self) -> None:
        """Say so when the chains do not agree."""
        if self.drawn.chains > 1 and self.drawn.user.shape[1] >= 4:
            found = self.diagnose(200)
            if found.share_good < 0.95:
                logger.warning(
                    "the chains do not agree yet: R-hat is above %s for %.0f %% of preferences (see diagnose()); raise "
                    "warmup and draws",
                    GOOD,
                    100 * (1 - found.share_good),
                )

    def _resolved(self) -> GibbsSettings:
        """Return the settings checked, with a seed."""
        given = self.get_params()
        del given["num_threads"]
        state = given.pop("random_state")
        if state is None:
            state = np.random.default_rng()
        if isinstance(state, np.random.Generator):
            state = int(state.integers(2**63 - 1))
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        return GibbsSettings(**plain, seed=state.item() if isinstance(state, np.generic) else state)

    @property
    def users(self) -> IdArray:
        """The users' ids, in row order."""
        return self.user_ids.array

    @property
    def items(self) -> IdArray:
        """The items' ids, in row order."""
        return self.item_ids.array

    def mean_model(self) -> SAD:
        """Return one SAD model that stands for all draws: its preferences are close to their posterior means.

        They are in log-odds, as those of any SAD model: the probit means times 1.702, for which ``sigmoid`` and ``Phi``
        agree to 0.01. Everything a model can do works on it. What its probabilities leave out is the uncertainty:
        ``mean(..., of="probability")`` of the posterior is nearer to one half.
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
        return SAD.from_factors(xi * LOGIT_PER_PROBIT, eta, tau, users=self.users, items=self.items, seen=self.seen)

    def draw_model(self, draw: int) -> SAD:
        """Return the model of a single draw, its preferences in log-odds like those of :meth:`mean_model`.

        Parameters
        ----------
        draw
            Its number, in the order of :meth:`preference`.
        """
        if isinstance(draw, bool) or not isinstance(draw, int | np.integer) or not 0 <= draw < len(self.drawn):
            raise ValueError(f"draw must be one of 0..{len(self.drawn) - 1}, not {draw!r}")
        xi, eta, tau = (array[draw] for array in self.drawn.flat())
        return SAD.from_factors(
            xi * np.float32(LOGIT_PER_PROBIT), eta, tau, users=self.users, items=self.items, seen=self.seen
        )

    def save(self, path: str | Path) -> None:
        """Write draws, ids, settings and what was observed to a file; an old file stays until all is written."""
        observed = self._observed_user, self.observed.winner, self.observed.loser, self.observed.root
        save_posterior(path, self.drawn, self.user_ids, self.item_ids, observed, self.seen, self.settings)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote. Nothing in it is executed.

        Raises
        ------
        ModelFileError
            When the file is something else, damaged, or of a newer version.
        """
        drawn, users, items, (user, winner, loser, root), seen, settings = load_posterior(path)
        given = settings.as_dict()
        found = cls(**{name: value for name, value in given.items() if name != "seed"}, random_state=given["seed"])
        start = np.searchsorted(user, np.arange(len(users) + 1)).astype(np.int64)
        found._hold(drawn, users, items, user, ByUser(start, winner, loser, root), seen, settings)
        return found
