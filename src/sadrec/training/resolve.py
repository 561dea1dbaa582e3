"""Resolve settings: replace those left at None by what suits the data, and refuse given ones that have no effect."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from sadrec._core.memory import give_back
from sadrec._core.settings import opened
from sadrec.training.defaults import FREE_RATE, SOFTMAX, default_blocks, defaults
from sadrec.training.settings import RIVALS_REST, Kind, Loss, Settings, Solver, TrainingSettings
from sadrec.training.sgd.survey import MIDDLE, Survey
from sadrec.training.variational.solver import SWEEPS

# The largest number of entries (8 bytes each) in the matrices that the variational solver holds for users and items.
MOST_MOMENTS = 2**28
FEW_FACTORS, FACTORS, SGD_FACTORS = 2, 8, 64
_SURVEYED = "length", "rival_regularization"


class DataFacts(Protocol):
    """The properties of data that settings depend on, here or on workers: ``TrainingData`` has them."""

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
    def survey(self, settings: Settings, factors: int | None, length: float | None, threads: int) -> Survey: ...  # noqa: D102


def resolve_solver(values: Mapping[str, Any], data: DataFacts, continues: bool) -> tuple[Solver, int]:
    """Return the solver, and the number of factors that it starts with where none is given.

    It follows the data or its own name: "variational" is for comparisons without a model to continue, if the solver's
    matrices for this number of users and items fit.
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
        raise ValueError("solver='variational' cannot continue a fitted model: fit again, or set solver='sgd'")
    wanted = values["factors"] or factors
    if solver == "variational" and not fits(wanted):
        raise ValueError(
            f"solver='variational' with {users:,} users, {items:,} items and factors={wanted} would need more "
            f"than {8 * MOST_MOMENTS // 2**30} GiB: lower factors or set solver='sgd'"
        )
    return solver, SGD_FACTORS if solver == "sgd" else factors


_OF_NEGATIVES = ("negative_candidates", "user_balance")


def refuse_unused(given: Mapping[str, Any], solver: Solver, loss: Loss, kind: Kind) -> None:
    """Raise a ValueError for a given setting without effect for this solver, loss and data."""
    used = {"solver": solver, "loss": loss}
    learnt = {"solver": kind, "loss": f"{kind} like these"}
    for name in given:
        about = opened(TrainingSettings)[name].metadata
        setting = f"{name}={given[name]!r}"
        if kind not in about["kinds"] and given[name] != "pairwise":  # a comparison is a pair
            raise ValueError(f"{setting} is for {' and '.join(about['kinds'])}: leave it out for {kind}")
        if name in _OF_NEGATIVES and given.get("order_share") == 1:
            raise ValueError(f"{setting} is for sampled negatives: leave it out with order_share=1, which has none")
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
    data: DataFacts,
    learn_rivals: bool,
    seed: int,
    continues: bool = False,
    before: Settings | None = None,
    kept: Mapping[str, Any] | None = None,
) -> Settings:
    """Resolve settings left at None by the data; raise on given ones without effect.

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
        values["loss"] = values["loss"] or "softmax"
        if values["loss"] == "softmax":
            values |= {name: getattr(before, name) for name in _SURVEYED if values.get(name) is None}
    ordered = continues or no_negatives or values["order_share"] > 0
    loss: Loss = values["loss"] or ("pairwise" if ordered else "softmax")
    refuse_unused(stated, solver, loss, data.kind)
    if loss == "softmax" and no_negatives and not continues:
        raise ValueError(f"loss={loss!r} needs sampled items: leave it out with order_share=1")
    size = (*data.shape, data.triples)
    wanted = {"factors": factors, **defaults(data.kind, *size, loss), "loss": loss}
    wanted |= {"solver": solver, "blocks": default_blocks(data.kind, *size)}
    if loss == "softmax":
        wanted["length"] = MIDDLE
    if values["adaptive"]:
        wanted["iterations"] *= 2
    if values["length"] == 0:
        wanted["learning_rate"] = FREE_RATE
    if solver == "variational":
        wanted |= {"iterations": SWEEPS, "bias": True, "regularization": 0.0, "rival_regularization": 0.0}
    origins = {name: "default" if values[name] in (None, declarations[name].default) else "given" for name in values}
    origins |= {name: "data" for name in wanted if values.get(name) is None}
    if loss == "softmax":
        origins |= {name: "default" for name in ("loss", *SOFTMAX) if origins.get(name) == "data"}
    used = {"solver": solver, "loss": loss}
    for name in {*values, *wanted}:
        needs, kinds = declarations[name].metadata["needs"], declarations[name].metadata["kinds"]
        if data.kind not in kinds or any(used[what] != value for what, value in needs.items()):
            origins[name] = "not used"
    if no_negatives and loss == "pairwise":
        origins["loss"] = "not used"
    given_size = values["factors"], values["length"]
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
    if loss == "softmax" and None in given_size:
        asked = replace(settings, learn_rivals=learn_rivals and not data.has_pairs)  # T learns from pairs
        suited = data.survey(asked, *given_size, given.get("num_threads", 0))
        give_back()  # the sample that the survey looks at is as large as a model
        if suited.rival_regularization != settings.rival_regularization:
            origins["rival_regularization"] = "data"
        settings = Settings(**vars(settings) | suited._asdict())
    return settings


def as_before(
    given: Mapping[str, Any], before: Settings | None, factors: int, bias: bool, variational: bool
) -> dict[str, Any]:
    """Fill settings left at None from the fit that is continued, whose factors and bias stay in any case.

    A variational fit has no penalties to continue with, and keeps fewer factors than it was given. Where another loss
    is given, the rest of what was settled for the one before is not taken over; that T rests is so for interactions.
    """
    values = dict(given)
    if before is not None and not variational and values.get("loss") in (None, before.loss):
        of_interactions = ("rival_regularization",) if before.rival_regularization >= RIVALS_REST else ()
        names = {"length", *SOFTMAX}.difference(of_interactions)
        values |= {name: getattr(before, name) for name in names if values.get(name) is None}
    if values.get("bias") is None:
        values["bias"] = bias
    if values.get("factors") is None or variational:
        values["factors"] = factors
    return values
