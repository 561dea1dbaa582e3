"""Evidence for the Gibbs sampler: agreement of chains, coverage, calibration, agreement with SGD, choice of prior."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

import sadrec
from sadrec import SAD, Comparisons
from sadrec.data import Simulation, simulate
from sadrec.posterior import GibbsSAD
from sadrec.posterior.belief import LOGIT_PER_PROBIT
from studies._tools import Record, Unit, markdown_table, run, write_whole
from studies.simulation.authors import read_simulation

PAPER: Mapping[str, Any] = {"user_scale": 1.0, "item_scale": 1.0, "rival_scale": 1.0, "user_mean": 0.0, "bias": False}
PRIORS: Mapping[str, Mapping[str, Any]] = {
    "learnt": {},
    "learnt, no bias": {"bias": False},
    "learnt, tau = 1 (BPR)": {"rival_scale": 0.0},
    "scales learnt, user mean 0": {"user_mean": 0.0},
    "scales learnt, user mean 1": {"user_mean": 1.0},
    "scales 1": PAPER,
    "scales 1, user mean 1": {**PAPER, "user_mean": 1.0},
}
TRUTHS = ("scales 1", "learnt", "sim2", "scales 1 and a bias")
DATA = ("llmfao", "passage-crowdbt")
PARTS = ("convergence", "coverage", "predicting")

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 2


@dataclass(frozen=True)
class Length:
    """How much is computed.

    Attributes
    ----------
    draws, warmup
        Of the chains of the convergence part; the other parts take fixed shares of them.
    data_sets
        Simulated data sets per kind of truth in the coverage part.
    priors, factors, real
        How many priors, which numbers of factors and how many sets of real comparisons in the predicting part.
    """

    draws: int = 2000
    warmup: int = 1000
    data_sets: int = 60
    priors: int = len(PRIORS)
    factors: tuple[int, ...] = (1, 2, 4, 16)
    real: int = len(DATA)


def sim2(source: str, missing: float, data_folder: Path | None) -> Simulation:
    """Return the authors' simulation, or one of our own by number."""
    if source == "authors" and data_folder is not None:
        return read_simulation(data_folder / "authors-sim2" / "raw.npz", missing=missing)
    return simulate("sim2", missing=missing, seed=0 if source == "authors" else int(source))


def convergence(length: Length, data_folder: Path | None, source: str, missing: float, seed: int, prior: str) -> Record:
    """Sample a simulation at the paper's size; compare chains with each other, with the truth and with SGD."""
    truth = sim2(source, missing, data_folder)
    said = truth.comparisons
    began = time.perf_counter()
    chains: dict[str, Any] = {"draws": length.draws, "warmup": length.warmup, "chains": 4, **PRIORS[prior]}
    chains["bias"] = False  # the simulations have none
    sampled = GibbsSAD(factors=5, random_state=seed, **chains).fit(said, show_progress=False)
    spent = time.perf_counter() - began
    user, one, other = every_pair(len(said.users), len(said.items))
    diagnosis = sampled.diagnose(None)
    mean, x = sampled.preference(user, one, other), truth.X[user, one, other]
    model = sampled.mean_model()
    sgd = SAD(factors=5, solver="sgd", random_state=seed).fit(said, show_progress=False).preference(user, one, other)
    adaptive = SAD(factors=5, solver="sgd", advanced={"adaptive": True}, random_state=seed).fit(
        said, show_progress=False
    )
    low, high = sampled.interval(user, one, other, 0.9)
    differs = (np.abs(truth.rival_factors - 1) > 0.05).any(axis=1)
    says = sampled.rival_differs(np.arange(len(said.items)), by=0.5)
    return {
        "seconds": spent,
        "share_r_hat_good": diagnosis.share_good,
        "largest_r_hat": float(diagnosis.r_hat.max()),
        "effective_size": np.quantile(diagnosis.effective_size, [0.0, 0.05, 0.5]).tolist(),
        "correlation_truth": _correlation(mean, x),
        "correlation_sgd": _correlation(mean, sgd),
        "correlation_sgd_adaptive": _correlation(mean, adaptive.preference(user, one, other)),
        "sgd_correlation_truth": _correlation(sgd, x),
        "mean_model_correlation": _correlation(mean, model.preference(user, one, other)),
        "mean_squared_error": float(np.mean((mean - x) ** 2)),
        "coverage_of_logistic_truth": float(((low <= x) & (x <= high)).mean()),
        "rival_differs_right": float(((says > 0.5) == differs).mean()),
    }


def every_pair(users: int, items: int) -> tuple[Any, Any, Any]:
    """Return every user with every pair of items, as three columns."""
    one, other = np.triu_indices(items, 1)
    return np.repeat(np.arange(users), len(one)), np.tile(one, users), np.tile(other, users)


def _correlation(one: Any, other: Any) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def draw_truth(kind: str, rng: np.random.Generator, users: int, items: int, factors: int) -> tuple[Comparisons, Any]:
    """Draw parameters and the outcome of every pair under the probit; return what was said and every x_uij."""
    scales = np.abs(rng.normal(size=3)) if kind == "learnt" else np.ones(3)
    mean = rng.normal(size=factors) if kind == "learnt" else 0.0
    xi = mean + scales[0] * rng.normal(size=(users, factors))
    eta = scales[1] * rng.normal(size=(items, factors))
    low = stats.norm.cdf(0, 1, scales[2])
    tau = stats.norm.ppf(low + (1 - low) * rng.random((items, factors)), 1, scales[2])
    if kind == "sim2":
        xi, eta = rng.uniform(-2, 2, xi.shape) / 1.3, rng.uniform(-2, 2, eta.shape) / 1.3
        tau = np.where(rng.random(tau.shape) < 0.14, rng.choice([0.01, 5.0], tau.shape), 1.0)
    user, one, other = every_pair(users, items)
    x = ((eta[one] * tau[other] - eta[other] * tau[one]) * xi[user]).sum(axis=1)
    if kind.endswith("bias"):
        bias = abs(rng.normal()) * rng.normal(size=items)
        x += bias[one] - bias[other]
    won = rng.random(len(x)) < ndtr(x)
    columns = user, np.where(won, one, other), np.where(won, other, one)
    return Comparisons.from_indices(*columns, users=np.arange(users), items=np.arange(items)), x


def coverage(length: Length, data_folder: Path | None, kind: str, number: int) -> Record:
    """Sample one simulated data set; count the true preferences in their 90 % intervals, and rank one of them."""
    users, items, factors = 8, 12, 3
    rng = np.random.default_rng([TRUTHS.index(kind), number])
    said, x = draw_truth(kind, rng, users, items, factors)
    chains = {"draws": 3 * length.draws // 8, "warmup": 3 * length.warmup // 4, "chains": 2, "thin": 2}
    prior = PAPER if kind.startswith("scales 1") else {}
    given: dict[str, Any] = {**chains, **prior, "bias": kind.endswith("bias")}
    sampled = GibbsSAD(factors=factors, random_state=number, **given).fit(said, show_progress=False)
    user, one, other = every_pair(users, items)
    low, high = (end / LOGIT_PER_PROBIT for end in sampled.interval(user, one, other, 0.9))
    chosen = int(rng.integers(len(x)))
    draws = sampled.preference_draws(int(user[chosen]), int(one[chosen]), int(other[chosen])) / LOGIT_PER_PROBIT
    thinned = np.asarray(draws).reshape(2, -1)[:, ::15].ravel()
    return {
        "coverage": float(((low <= x) & (x <= high)).mean()),
        "width": float((high - low).mean()),
        "rank": int((thinned < x[chosen]).sum()),
        "draws": len(thinned),
        "share_r_hat_good": sampled.diagnose(None).share_good,
    }


def predicting(length: Length, data_folder: Path | None, name: str, prior: str, factors: int, seed: int) -> Record:
    """Hold out a fifth of real comparisons and predict them."""
    if data_folder is None:
        raise ValueError(f"the comparisons of {name} are read from a folder of data sets: name it")
    train, test = Comparisons.read(data_folder / name / "comparisons.parquet").split(test=0.2, seed=seed)
    chains = {"draws": length.draws // 4, "warmup": length.warmup, "chains": 4, "thin": 2}
    given: dict[str, Any] = {**chains, **PRIORS[prior]}
    sampled = GibbsSAD(factors=factors, random_state=seed, **given).fit(train, show_progress=False)
    ids = test.users[test.user_index], test.items[test.winner_index], test.items[test.loser_index]
    p = sampled.probability(*ids)
    return {
        "log_loss": float(-np.log(p).mean()),
        "accuracy": float(((p > 0.5) + 0.5 * (p == 0.5)).mean()),
        "share_r_hat_good": sampled.diagnose(1000).share_good,
        "scales": sampled.drawn.scales.mean(axis=(0, 1)).tolist(),
    }


_COMPUTE: Mapping[str, Callable[..., Record]] = {
    "convergence": convergence,
    "coverage": coverage,
    "predicting": predicting,
}


def pieces(length: Length, data_folder: Path | None) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield all the work: the part and its arguments."""
    for prior in ("learnt", "scales 1"):
        yield "convergence", ("authors", 0.0, 0, prior)
    for source, missing in (("1", 0.0), ("authors", 0.5)):
        yield "convergence", (source, missing, 1, "learnt")
    for kind in TRUTHS:
        for number in range(length.data_sets):
            yield "coverage", (kind, number)
    for name in DATA[: length.real if data_folder is not None else 0]:
        for prior in list(PRIORS)[: length.priors]:
            yield "predicting", (name, prior, 8, 0)
        for factors in length.factors:
            yield "predicting", (name, "learnt", factors, 0)


def posterior_study(
    folder: str | Path,
    data_folder: str | Path | None,
    *,
    parts: Sequence[str] = PARTS,
    length: Length | None = None,
    show_progress: bool = True,
) -> Path:
    """Collect the evidence and return the path of the Markdown report.

    Parameters
    ----------
    folder
        Where the report is written; finished pieces are kept in ``runs``, and a study that was killed continues.
    data_folder
        Holds the authors' simulation and the sets of comparisons. Without it the former is simulated anew and the
        latter are left out.
    parts
        Which parts of :data:`PARTS` to compute.
    length
        How much to compute.
    show_progress
        Whether to show a progress bar (on a terminal).
    """
    folder, length = Path(folder), length or Length()
    known = None if data_folder is None else Path(data_folder)
    wanted = [piece for piece in pieces(length, known) if piece[0] in parts]
    units = []
    for part, arguments in wanted:
        name = "-".join(str(argument).replace(" ", "_").replace(",", "") for argument in (part, *arguments))
        identity = {"format": FORMAT, "version": sadrec.__version__, "length": length, "data": known is not None}
        compute = partial(_COMPUTE[part], length, known, *arguments)
        units.append(Unit(name, {**identity, "part": part, "arguments": arguments}, compute))
    records = run(folder, units, "posterior", show_progress=show_progress)
    done = [(part, arguments, record) for (part, arguments), record in zip(wanted, records, strict=True)]
    tables = [
        make([entry[1:] for entry in done if entry[0] == part]) for part, make in _TABLES.items() if part in parts
    ]
    write_whole(folder / "report.md", "\n\n".join(["# The Gibbs sampler", *tables]) + "\n")
    return folder / "report.md"


Results = Sequence[tuple[tuple[Any, ...], Record]]


def _convergence_table(results: Results) -> str:
    rows = []
    names = ("correlation_truth", "correlation_sgd", "correlation_sgd_adaptive", "sgd_correlation_truth")
    for (source, missing, seed, prior), r in results:
        rows.append([source, f"{missing:.0%}", prior, seed, f"{r['share_r_hat_good']:.1%}"])
        rows[-1] += [f"{r['largest_r_hat']:.3f}", ", ".join(f"{size:.0f}" for size in r["effective_size"])]
        rows[-1] += [f"{r[name]:.3f}" for name in names]
        rows[-1] += [f"{1 - r['mean_model_correlation']:.1e}", f"{r['mean_squared_error']:.2f}"]
        rows[-1] += [f"{r['rival_differs_right']:.0%}", f"{r['seconds']:.0f}"]
    header = ["simulation", "missing", "prior", "seed", "R-hat <= 1.05", "largest"]
    header += ["effective draws (least, 5 %, median)", "correlation with truth", "with SGD", "with adaptive SGD"]
    header += ["SGD with truth", "1 - correlation of mean model", "MSE", "tau told right", "seconds"]
    return markdown_table(header, rows)


def _coverage_table(results: Results) -> str:
    rows = []
    for kind in dict.fromkeys(arguments[0] for arguments, _ in results):
        some = [record for arguments, record in results if arguments[0] == kind]
        share = np.array([record["coverage"] for record in some])
        error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else float("nan")
        draws, bins = some[0]["draws"], np.linspace(0, 1, 11)
        counts = np.histogram([record["rank"] / draws for record in some], bins)[0]
        # Ranks from 0 to the number of draws do not fill ten bins evenly.
        expected = np.histogram(np.arange(draws + 1) / draws, bins)[0] * (len(some) / (draws + 1))
        p = stats.chisquare(counts, expected).pvalue if expected.min() > 0 else float("nan")
        width = np.mean([record["width"] for record in some])
        good = np.mean([record["share_r_hat_good"] for record in some])
        rows.append([kind, len(some), f"{share.mean():.1%}", f"{error:.1%}", f"{p:.2f}", f"{width:.2f}", f"{good:.1%}"])
    header = ["truth", "data sets", "coverage of 90 % intervals", "standard error", "ranks uniform: p", "mean width"]
    return markdown_table([*header, "R-hat <= 1.05"], rows)


def _predicting_table(results: Results) -> str:
    rows = []
    for (name, prior, factors, _), r in results:
        rows.append([name, prior, factors, f"{r['log_loss']:.4f}", f"{r['accuracy']:.1%}"])
        rows[-1] += [f"{r['share_r_hat_good']:.1%}", ", ".join(f"{scale:.2f}" for scale in r["scales"])]
    header = ["data", "prior", "factors", "held-out log loss", "accuracy", "R-hat <= 1.05", "prior scales"]
    return markdown_table(header, rows)


_TABLES: Mapping[str, Callable[[Results], str]] = {
    "convergence": _convergence_table,
    "coverage": _coverage_table,
    "predicting": _predicting_table,
}
