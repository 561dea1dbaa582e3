"""SAD and BPR: the models and their settings."""

from dataclasses import dataclass, field
from typing import Literal

from sadrec.models.base import documented
from sadrec.models.circles import CircleVerbs
from sadrec.models.reasons import ReasonVerbs
from sadrec.models.stored import Stored
from sadrec.models.verbs import PairVerbs
from sadrec.training.settings import TrainingSettings


@documented
class SAD(TrainingSettings, PairVerbs, CircleVerbs, ReasonVerbs, Stored):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in circles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None are resolved by the kind of data in ``fit``; :attr:`settings` holds what was used.

    {settings}

    Examples
    --------
    >>> from sadrec import Comparisons
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "judge": ["ann"] * 3, "winner": ["rock", "scissors", "paper"], "loser": ["scissors", "paper", "rock"]
    ... })
    >>> game = Comparisons.from_frame(frame, user="judge", winner="winner", loser="loser")
    >>> model = SAD(factors=4, iterations=1000, learning_rate=0.3, rival_regularization=0.0).fit(game)
    >>> model.preference("ann", ["rock", "scissors", "paper"], ["scissors", "paper", "rock"]) > 0
    array([ True,  True,  True])
    """

    _learn_rivals = True


@documented
@dataclass(eq=False, repr=False)
class BPR(SAD):
    """Bayesian Personalised Ranking: SAD with all rival factors at 1, ``x_uij = <xi_u, eta_i - eta_j> [+ b_i - b_j]``.

    Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009. The same training, verbs and files as :class:`SAD`,
    whose settings it shares but for those of the rivals.

    {settings}

    Examples
    --------
    >>> import numpy as np
    >>> liked = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    >>> model = BPR(factors=4, iterations=10).fit(liked)
    >>> model.user_factors.shape, float(model.rival_factors.min())
    ((3, 4), 1.0)
    """

    _learn_rivals = False
    rival_regularization: None = field(default=None, init=False)
    adaptive: Literal[False] = field(default=False, init=False)
