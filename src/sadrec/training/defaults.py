"""What settings left at None become: default settings that follow the kind and the size of the data."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

from sadrec._memory import give_back
from sadrec._settings import opened
from sadrec.training.settings import Kind, Loss, Settings, Solver, TrainingSettings
from sadrec.training.variational import SWEEPS

# What a setting left at None becomes. docs/defaults.md tells where the numbers come from. Some follow the data, see
# ``defaults``: l2 for interactions is that for 300 of them per vector, the penalties for comparisons those for 1000.
DEFAULTS: dict[Kind, dict[str, Any]] = {
    "interactions": {
        "iterations": 50,
        "learning_rate": 0.05,
        "regularization": 0.012,
        "rival_regularization": 0.001,
        "init_scale": 0.1,
        "bias": True,
        "negative_candidates": 8,
        "negatives": 256,
        "loss": "pairwise",
        "length": 0.0,
        "user_balance": 0.3,
    },
    "comparisons": {
        "iterations": 60,
        "learning_rate": 0.05,
        "regularization": 0.0005,
        "rival_regularization": 0.01,
        "init_scale": 0.1,
        "bias": False,
        "negative_candidates": 1,
        "negatives": 256,
        "loss": "pairwise",
        "length": 0.0,
        "user_balance": 0.0,
    },
}

# What they become with loss="softmax"; the length follows the data as well.
SOFTMAX: dict[str, Any] = {
    "factors": 128,
    "iterations": 20,
    "learning_rate": 0.3,
    "rival_regularization": 0.03,
    "negative_candidates": 1,
    "user_balance": 0.5,
    "loss": "softmax",
}

# The learning rate for vectors whose length is free: what a length bounds would diverge.
FREE_RATE = 0.05

MOST_BLOCKS = 16


# Interactions: a candidate for so many of them per vector; the strongest l2 where neighbours tell no more than
# popularity; from how many interactions of a user on users count more equally; from which lift on taste is personal
# enough for many negatives at once; and, with these, the square of the length for each e-fold of the catalogue.
PER_CANDIDATE, STRONGEST, BALANCED_FROM = 25.0, 0.02, 20.0
PERSONAL, SQUARE_PER_FOLD = 1.2, 0.95
# The share of that square which is taken at a lift of 0, how it grows with the lift, and the least.
SHARE, SHARE_PER_LIFT, LEAST_SHARE = 0.4, 0.3, 0.2
# Below so many interactions per vector many negatives at once learn more as well, if there are enough to tell in all.
SPARSE, ENOUGH = 60.0, 10_000
# Where there are so many per vector, they learn popularity without a bias, and users need little balance.
DENSE, DENSE_BALANCE = 190.0, 0.1
# One candidate for so many items, up to a limit, where taste is personal and one negative at a time is asked for.
ITEMS_PER_CANDIDATE, MOST_CANDIDATES = 250, 64

# Comparisons per vector below which what one judge says is mostly noise, and what becomes of the settings then: a bias
# learns what all judges agree on, and their own vectors start near 0 and stay there unless there is a reason.
SCARCE_PER_VECTOR = 100.0
SCARCE: dict[str, Any] = {"regularization": 0.03, "rival_regularization": 0.01, "init_scale": 0.01, "bias": True}


def defaults(
    kind: Kind, users: int, items: int, pairs: int, lift: float = 0.0, loss: Loss | None = None
) -> dict[str, Any]:
    """Return what settings left at None become for data of this kind and size.

    Interactions: the more is known per vector, the harder the negatives it can be trained against and the less it has
    to be held back: candidates grow in proportion to the interactions per vector (1 to 8), l2 falls with their square
    root, from at most 0.02, or more where popularity is the better guess (a :func:`~sadrec.training.lift.lift` below
    0). Users count more equally where they have done something. From 190 interactions per vector on there is no bias.
    Where taste is personal (a lift of 1.2 or more), or there are fewer than 60 interactions per vector, each
    interaction is trained against many negatives at once, and vectors have a length that grows with the logarithm of
    the catalogue and with the lift, unless ``loss`` says otherwise; users count more equally where taste is personal
    (measured: docs/defaults.md).

    >>> def rule(users, items, pairs, lift):
    ...     values = defaults("interactions", users, items, pairs, lift)
    ...     numbers = ("negative_candidates", "regularization", "length", "user_balance")
    ...     return values["loss"], *(round(values[name], 3) for name in numbers)
    >>> rule(users=6_040, items=3_706, pairs=800_000, lift=0.8)  # MovieLens 1M
    ('pairwise', 8, 0.013, 0.0, 0.1)
    >>> rule(users=17_482, items=1_358, pairs=130_000, lift=-0.1)  # Food.com
    ('softmax', 1, 0.022, 1.592, 0.0)
    >>> rule(users=29_858, items=40_981, pairs=810_000, lift=3.2)  # Gowalla
    ('softmax', 1, 0.02, 3.176, 0.5)

    Comparisons: each moves the vectors of one user and two items, and a penalty is paid at every step. So that it
    amounts to the same prior however much is known, l2 is divided by the comparisons per vector: 0.0005 at 1000 of them
    is a standard normal prior. The l1 penalty, which separates signal from noise in tau, falls with their fourth root
    (measured: docs/simulation.md). Where there are few, as when many judges say a little each, an item bias takes over
    (measured: docs/feedback.md).

    >>> round(defaults("comparisons", users=20, items=50, pairs=24_500)["regularization"], 6)
    0.000476
    >>> round(defaults("comparisons", users=20, items=50, pairs=4_900)["regularization"], 6)
    0.002381
    >>> defaults("comparisons", users=600, items=500, pairs=12_000)["bias"]
    True
    """
    values = dict(DEFAULTS[kind])
    per_vector = 3 * pairs / max(users + items, 1)
    if kind == "interactions":
        strongest = STRONGEST * (1 + max(-lift, 0))
        values["regularization"] = min(values["regularization"] * math.sqrt(300 / max(per_vector, 1)), strongest)
        wanted, most = per_vector / PER_CANDIDATE, values["negative_candidates"]
        if lift >= PERSONAL:
            wanted, most = max(wanted, items / ITEMS_PER_CANDIDATE), MOST_CANDIDATES
        values["negative_candidates"] = min(max(round(wanted), 1), most)
        if pairs < BALANCED_FROM * users:
            values["user_balance"] = 0.0
        elif per_vector >= DENSE:
            values |= {"user_balance": DENSE_BALANCE, "bias": False}
        sparse = per_vector < SPARSE and pairs >= ENOUGH
        if loss == "softmax" or (loss is None and (lift >= PERSONAL or sparse)):
            share = min(max(SHARE + SHARE_PER_LIFT * lift, LEAST_SHARE), 1.0)
            length = math.sqrt(share * SQUARE_PER_FOLD * math.log(max(items, 2)))
            balance = SOFTMAX["user_balance"] if lift >= PERSONAL else 0.0
            values |= SOFTMAX | {"length": length, "user_balance": balance, "bias": True}
    elif pairs >= STATEMENT:
        if per_vector < SCARCE_PER_VECTOR:
            return values | SCARCE
        scarcity = 1000 / per_vector
        values["regularization"] *= scarcity
        values["rival_regularization"] *= scarcity**0.25
    return values


def default_blocks(kind: Kind, users: int, items: int, pairs: int) -> int:
    """Return a number of blocks that suits the data: 1 for tiny data, at most 16.

    >>> default_blocks("interactions", users=6040, items=3706, pairs=1_000_000)
    16
    >>> default_blocks("comparisons", users=20, items=50, pairs=24_500)
    1
    """
    blocks = min(users // 32, items // 64, MOST_BLOCKS)
    if kind == "comparisons":
        blocks = 2 * min(blocks // 2, pairs // 100_000)
    return max(blocks, 1)


# Settings that follow the lift.
BY_LIFT = ("loss", "regularization", "negative_candidates", "length")

# Fewer comparisons are taken as they stand: they are no sample that tells how scarce the data is.
STATEMENT = 100

# The variational solver holds a matrix for every user and item: so many numbers at most (8 bytes each).
MOST_MOMENTS = 2**28
FEW_FACTORS, FACTORS, SGD_FACTORS = 2, 8, 64


class Described(Protocol):
    """What settings follow, of data that is here or elsewhere: ``TrainingData`` has it."""

    @property
    def shape(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def triples(self) -> int: ...  # noqa: D102
    @property
    def kind(self) -> Kind: ...  # noqa: D102
    @property
    def has_ratings(self) -> bool: ...  # noqa: D102
    @property
    def has_pairs(self) -> bool: ...  # noqa: D102
    def lift(self) -> float: ...  # noqa: D102


def resolve_solver(values: Mapping[str, Any], data: Described, continues: bool) -> tuple[Solver, int]:
    """Return the solver, and the number of factors that it starts with where none is given.

    It follows the data or its own name: comparisons are learnt by "variational" where a fit starts anew and the
    solver's matrices for this number of users and items fit.
    """
    users, items = data.shape
    factors = FACTORS if data.triples >= 4 * (users + items) else FEW_FACTORS

    def fits(factors: int) -> bool:
        return (users + 4 * items) * (1 + factors) ** 2 <= MOST_MOMENTS

    solver: Solver | None = values["solver"]
    if solver is None:
        solver = "variational" if data.kind == "comparisons" and not continues and fits(factors) else "sgd"
    elif solver == "variational" and data.kind != "comparisons":
        raise ValueError("solver='variational' learns from comparisons alone: leave it out for interactions")
    elif solver == "variational" and continues:
        raise ValueError("solver='variational' cannot continue a fitted model: fit anew, or set solver='sgd'")
    wanted = values["factors"] or factors
    if solver == "variational" and not fits(wanted):
        raise ValueError(
            f"solver='variational' with {users:,} users, {items:,} items and factors={wanted} would need more "
            f"than {8 * MOST_MOMENTS // 2**30} GiB: lower factors or set solver='sgd'"
        )
    return solver, SGD_FACTORS if solver == "sgd" else factors


def refuse_unused(given: Mapping[str, Any], solver: Solver, loss: Loss, kind: Kind) -> None:
    """Raise a ValueError for a setting that is given and has no effect with this solver and loss on such data."""
    used = {"solver": solver, "loss": loss}
    learnt = {"solver": kind, "loss": f"{kind} like these"}
    for name in given:
        about = opened(TrainingSettings)[name].metadata
        setting = f"{name}={given[name]!r}"
        if kind not in about["kinds"] and given[name] != "pairwise":  # a comparison is a pair
            raise ValueError(f"{setting} is for {' and '.join(about['kinds'])}: leave it out for {kind}")
        for what, value in about["needs"].items():
            if used[what] != value:
                remedy = (
                    f"leave it out with {what}={used[what]!r}"
                    if what in given
                    else f"{learnt[what]} are learnt by {what}={used[what]!r} unless you set {what}={value!r}"
                )
                raise ValueError(f"{setting} is for {what}={value!r}: {remedy}")


def resolve(
    given: Mapping[str, Any],
    data: Described,
    learn_rivals: bool,
    seed: int,
    continues: bool = False,
    before: Settings | None = None,
    kept: Mapping[str, Any] | None = None,
) -> Settings:
    """Replace settings left at None by what suits the data; refuse given ones that have no effect.

    ``given`` are checked values, those of ``advanced`` among them. BPR does not learn rivals; ``continues`` says that
    the fit starts from a fitted model, and ``before`` are its settings, where it has some: its loss and length stay.
    ``kept`` takes the place of ``given`` in a fit that continues: it holds settings of the fit before as well, which
    may have no effect on data of another kind.
    """
    declarations = opened(TrainingSettings)
    fixed = ("num_threads", "random_state")
    stated = {name: value for name, value in given.items() if name not in fixed and value != declarations[name].default}
    values = {name: value for name, value in (given if kept is None else kept).items() if name not in fixed}
    if values["adaptive"] and not learn_rivals:
        raise ValueError("adaptive=True is for SAD: BPR has no rival factors")
    solver, factors = resolve_solver(values, data, continues)
    no_negatives = data.kind == "comparisons" or values["order_share"] == 1
    if before is not None and before.loss == "softmax" and not no_negatives:
        if values["loss"] is None and not data.has_pairs:
            values["loss"] = "softmax"
        if values["loss"] == "softmax" and values["length"] is None:
            values["length"] = before.length
    if values["loss"] is None and (continues or data.has_pairs or no_negatives):
        values["loss"] = "pairwise"
    used = {"solver": solver, "loss": values["loss"]}
    undecided = [declarations[name].metadata["needs"] for name in BY_LIFT if values[name] is None]
    by_lift = any(all(used[what] in (None, value) for what, value in needs.items()) for needs in undecided)
    personal = data.lift() if by_lift and data.kind == "interactions" else 0.0
    give_back()  # the sample that the lift looks at is as large as a model
    size = (*data.shape, data.triples)
    wanted = {"factors": factors, **defaults(data.kind, *size, personal, values["loss"])}
    wanted |= {"solver": solver, "blocks": default_blocks(data.kind, *size)}
    if values["adaptive"]:
        wanted["iterations"] *= 2
    if values["length"] == 0:
        wanted["learning_rate"] = FREE_RATE
    if solver == "variational":
        wanted |= {"iterations": SWEEPS, "bias": True, "regularization": 0.0, "rival_regularization": 0.0}
    loss = values["loss"] or wanted["loss"]
    refuse_unused(stated, solver, loss, data.kind)
    if loss == "softmax" and no_negatives and not continues:
        raise ValueError(f"loss={loss!r} needs sampled items: leave it out with order_share=1")
    origins = {name: "default" if values[name] in (None, declarations[name].default) else "given" for name in values}
    origins |= {name: "data" for name in wanted if values.get(name) is None}
    used = {"solver": solver, "loss": loss}
    for name in {*values, *wanted}:
        needs, kinds = declarations[name].metadata["needs"], declarations[name].metadata["kinds"]
        if data.kind not in kinds or any(used[what] != value for what, value in needs.items()):
            origins[name] = "not used"
    if no_negatives and loss == "pairwise":
        origins["loss"] = "not used"
    values |= {name: default for name, default in wanted.items() if values.get(name) is None}
    if loss == "pairwise":
        values["length"] = 0.0
    settings = Settings(**values, learn_rivals=learn_rivals, seed=seed, origins=origins)
    if settings.order_share > 0 and not data.has_ratings:
        raise ValueError(
            f"order_share={settings.order_share} asks for the order inside ratings, but the data has none: give "
            "interactions with ratings, or leave order_share at 0"
        )
    most = max(data.shape[1] // 2, 1)
    if settings.blocks > most and not no_negatives:
        raise ValueError(
            f"blocks must be at most {most} for {data.shape[1]} items, not {settings.blocks}: negatives are sampled "
            "inside a block, and a block of a single item has none"
        )
    return settings


def as_before(
    given: Mapping[str, Any], before: Settings | None, factors: int, bias: bool, variational: bool
) -> dict[str, Any]:
    """Fill settings left at None from the fit that is continued, whose factors and bias stay in any case.

    A variational fit has no penalties to continue with, and keeps fewer factors than it was given. Where another loss
    is given, the rest of what was settled for the one before is not taken over.
    """
    values = dict(given)
    if before is not None and not variational and values.get("loss") in (None, before.loss):
        values |= {name: getattr(before, name) for name in DEFAULTS["interactions"] if values.get(name) is None}
    if values.get("bias") is None:
        values["bias"] = bias
    if values.get("factors") is None or variational:
        values["factors"] = factors
    return values
