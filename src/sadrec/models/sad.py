"""SAD and BPR: the models and their settings."""

import numpy as np

from sadrec.models.circles import CircleVerbs
from sadrec.models.reasons import ReasonVerbs
from sadrec.models.stored import Stored
from sadrec.models.verbs import PairVerbs
from sadrec.training.settings import NegativeSampling, Schedule


class SAD(PairVerbs, CircleVerbs, ReasonVerbs, Stored):
    """Sliced Anti-symmetric Decomposition: who prefers what to what, even in circles.

    ``x_uij = sum_h xi_uh (eta_ih tau_jh - eta_jh tau_ih) [+ b_i - b_j]`` and ``P(i over j) = sigmoid(x_uij)``. With
    tau = 1 it is BPR.

    Settings left at None are resolved by the kind of data in ``fit``; :attr:`settings` holds what was used.

    Parameters
    ----------
    factors
        The length k of the vectors.
    iterations
        Epochs; each visits every interaction or comparison once. Adaptive training runs twice as many.
    learning_rate
        Of the first step; see ``schedule``.
    regularization
        l2 on user factors, item factors and bias (the paper's w2: a step subtracts ``2 w2 theta``).
    rival_regularization
        l1 that holds the rival factors to 1 (the paper's w1). The larger, the more of them are exactly 1.
    blocks
        Into how many blocks the items are dealt every epoch, at most half as many as there are items. The result
        depends on it, unlike on ``num_threads``.
    num_threads
        0 means all cores. The result is the same, bit by bit, for any number.
    random_state
        A whole number, a numpy generator, or None for a seed from the operating system.
    order_share
        The share of training pairs drawn from the order of the user's own ratings, 0 to 1; the rest are interacted
        over not interacted.
    negative_candidates
        Train against the hardest of so many drawn rivals; 1 takes the rival as it is drawn.
    bias
        Whether items have a bias ``b_i - b_j``, the same for everybody.
    adaptive
        A second phase of training in which each rival factor is held to 1 by as much as the first phase suggests.
    schedule
        "linear" lets the learning rate fall to zero, "constant" keeps it.
    init_scale
        Standard deviation of the first factors. Rival factors start at 1.
    negative_sampling
        How rivals are drawn from what a user has not touched: "uniform", or "popular" (in proportion to popularity).
    user_balance
        0 lets every interaction count the same, so that a user counts as much as they did; 1 lets every user count the
        same. In between, an interaction of a user with n of them weighs ``n ** -user_balance`` (1 on average). What is
        averaged over users, such as nDCG, may gain most at about 0.3 (measured: docs/top_n.md).

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

    def __init__(
        self,
        factors: int = 64,
        iterations: int | None = None,
        learning_rate: float | None = None,
        regularization: float | None = None,
        rival_regularization: float | None = None,
        blocks: int | None = None,
        num_threads: int = 0,
        random_state: int | np.random.Generator | None = 0,
        order_share: float = 0.0,
        negative_candidates: int | None = None,
        bias: bool | None = None,
        adaptive: bool = False,
        schedule: Schedule = "linear",
        init_scale: float | None = None,
        negative_sampling: NegativeSampling = "uniform",
        user_balance: float = 0.0,
    ):
        self.factors = factors
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.rival_regularization = rival_regularization
        self.blocks = blocks
        self.num_threads = num_threads
        self.random_state = random_state
        self.order_share = order_share
        self.negative_candidates = negative_candidates
        self.bias = bias
        self.adaptive = adaptive
        self.schedule = schedule
        self.init_scale = init_scale
        self.negative_sampling = negative_sampling
        self.user_balance = user_balance


class BPR(SAD):
    """Bayesian Personalised Ranking: SAD with all rival factors at 1, ``x_uij = <xi_u, eta_i - eta_j> [+ b_i - b_j]``.

    Rendle, Freudenthaler, Gantner and Schmidt-Thieme, UAI 2009. The same training, verbs and files as :class:`SAD`,
    whose settings it shares but for those of the rivals.

    Parameters
    ----------
    factors, iterations, learning_rate, regularization, blocks, num_threads, random_state, order_share
        As for :class:`SAD`.
    negative_candidates, bias, schedule, init_scale, negative_sampling, user_balance
        As for :class:`SAD`.

    Examples
    --------
    >>> import numpy as np
    >>> liked = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]])
    >>> model = BPR(factors=4, iterations=10).fit(liked)
    >>> model.user_factors.shape, float(model.rival_factors.min())
    ((3, 4), 1.0)
    """

    _learn_rivals = False

    def __init__(
        self,
        factors: int = 64,
        iterations: int | None = None,
        learning_rate: float | None = None,
        regularization: float | None = None,
        blocks: int | None = None,
        num_threads: int = 0,
        random_state: int | np.random.Generator | None = 0,
        order_share: float = 0.0,
        negative_candidates: int | None = None,
        bias: bool | None = None,
        schedule: Schedule = "linear",
        init_scale: float | None = None,
        negative_sampling: NegativeSampling = "uniform",
        user_balance: float = 0.0,
    ):
        super().__init__(
            factors,
            iterations,
            learning_rate,
            regularization,
            None,
            blocks,
            num_threads,
            random_state,
            order_share,
            negative_candidates,
            bias,
            False,
            schedule,
            init_scale,
            negative_sampling,
            user_balance,
        )
