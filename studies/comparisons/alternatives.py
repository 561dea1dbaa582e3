"""Other ways to write the model, and whether each pays: ``python -m studies.comparisons.alternatives``.

Every variant is ``x_uij = b_i - b_j + sum_g xi_ug sum_r (eta_igr tau_jgr - eta_jgr tau_igr)``, found by L-BFGS with
penalties that are chosen on the validation part. Users shrink to the mean of all.

- "T = 1": no rivals.
- "l2 on tau - 1", tau >= 0: what the others are compared with.
- "l1 on tau - 1": the paper's; "free sign": l2 without tau >= 0.
- "rank 2": two wedge products share one user weight, half as many weights (the paper's <alpha, beta>).
- "shared skew": factors of each user with T = 1, and as many with rivals that are the same for all users.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

from sadrec import Comparisons
from studies._options import listed, study
from studies._tools import Record, Unit, digest, markdown_table, run, write_whole
from studies.comparisons.baselines import Doubles, Predict, log_loss, weights_of
from studies.comparisons.models import Parts, best, losses
from studies.comparisons.study import find_sets, parts_of

# Penalties of scores and users are chosen first, with the middle one of rivals; then that of rivals.
SCORES = (0.3, 1.0, 4.0, 16.0)
MIDDLE = 1.0
RIVALS = (0.3, 5.0, 30.0)
STEPS = 150

# Part of every record: raise it when what is computed changes, and old records are computed again.
FORMAT = 2


@dataclass(frozen=True)
class Variant:
    """A way to write the model: groups of wedge products, each group with one weight per user."""

    title: str
    groups: int = 4
    rank: int = 1
    straight: int = 0  # so many groups, the first, have rivals of 1
    shared: int = 0  # so many groups, the last, weigh the same for all users
    l1: bool = False
    positive: bool = True
    judges: bool = False  # it differs from the others only where there are several


REFERENCE = "l2 on tau - 1"
VARIANTS = {
    variant.title: variant
    for variant in (
        Variant("T = 1", straight=4),
        Variant(REFERENCE),
        Variant("l1 on tau - 1", l1=True),
        Variant("free sign", positive=False),
        Variant("rank 2", groups=2, rank=2, judges=True),
        Variant("shared skew", groups=8, straight=4, shared=4, judges=True),
    )
}


class Arrays(NamedTuple):
    """The parameters, or their gradient: b (items), xi (users, groups), eta and tau (items, groups, rank)."""

    b: Doubles
    xi: Doubles
    eta: Doubles
    tau: Doubles


class Loss(NamedTuple):
    """Log loss on the test part, the same less that of the reference, and its standard error over rows."""

    loss: float
    difference: float
    error: float


class Problem:
    """Penalised loss of a variant on some comparisons, with its gradient.

    theta holds b, xi, eta and what tau is above 1; with l1 also what it is below 1, both not negative.
    """

    def __init__(self, data: Comparisons, variant: Variant, scores: float, rivals: float) -> None:
        self.data, self.variant, self._scores, self._rivals = data, variant, scores, rivals
        n, m, g, r = len(data.users), len(data.items), variant.groups, variant.rank
        self.shapes = [(m,), (n, g), (m, g, r), (m, g, r)] + ([(m, g, r)] if variant.l1 else [])
        place = np.arange(g)
        self.learns_users = (place < g - variant.shared) & (n > 1)
        self.learns_rivals = place >= variant.straight

    def split(self, theta: Doubles) -> list[Doubles]:
        """Return the parts of theta, as views."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        parts = np.split(theta, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def arrays(self, theta: Doubles) -> Arrays:
        """Return the parameters."""
        b, xi, eta, above, *below = self.split(theta)
        tau = 1.0 + above - (below[0] if below else 0.0)
        xi = np.where(self.learns_users, xi, 1.0)
        return Arrays(b, xi, eta, np.where(self.learns_rivals[:, None], tau, 1.0))

    def start(self, seed: int = 0) -> Doubles:
        """Return random parameters, so that factors can part."""
        rng = np.random.default_rng(seed)
        theta = np.zeros(sum(int(np.prod(shape)) for shape in self.shapes))
        _, xi, eta, above, *below = self.split(theta)
        xi[...] = np.where(self.learns_users, 1.0 + 0.5 * rng.standard_normal(xi.shape), 1.0)
        eta[...] = 0.3 * rng.standard_normal(eta.shape)
        away = np.clip(0.5 * rng.standard_normal(above.shape), -0.9, 2.0)
        above[...] = np.maximum(away, 0.0) if below else away
        for part in below:
            part[...] = np.maximum(-away, 0.0)
        return theta

    def bounds(self) -> list[tuple[float | None, float | None]] | None:
        """Return what keeps tau at or above 0."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        free: list[tuple[float | None, float | None]] = [(None, None)] * sum(sizes[:3])
        if self.variant.l1:
            return free + [(0.0, None)] * sizes[3] + [(0.0, 1.0)] * sizes[4]
        return free + [(-1.0, None)] * sizes[3] if self.variant.positive else None

    @cached_property
    def _sums(self) -> tuple[Any, Any, Any]:
        """Matrices that add up rows by winner, loser and user."""
        data, count = self.data, len(self.data)
        one, row = np.ones(count), np.arange(count)
        sides = (
            (data.winner_index, len(data.items)),
            (data.loser_index, len(data.items)),
            (data.user_index, len(data.users)),
        )
        winner, loser, user = (sp.csr_array((one, (at, row)), shape=(size, count)) for at, size in sides)
        return winner, loser, user

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return loss and gradient."""
        data, known = self.data, self.arrays(theta)
        winner, loser, user = data.winner_index, data.loser_index, data.user_index
        sides = known.eta[winner], known.tau[winner], known.eta[loser], known.tau[loser]
        x, wedge = _margins(known, data)
        value, slope = log_loss(x, weights_of(data))
        by_winner, by_loser, by_user = self._sums
        gradient = np.zeros_like(theta)
        of_b, of_xi, of_eta, of_above, *of_below = self.split(gradient)
        of_b += by_winner @ slope - by_loser @ slope + 2 * self._scores * known.b
        deviation = np.where(self.learns_users, known.xi - known.xi.mean(axis=0), 0.0)
        of_xi += np.where(self.learns_users, by_user @ (slope[:, None] * wedge) + 2 * self._scores * deviation, 0.0)
        weight = (slope[:, None] * known.xi[user])[:, :, None]

        def by_item(won: Doubles, lost: Doubles) -> Doubles:
            flat = (len(data), -1)
            total = by_winner @ (weight * won).reshape(flat) + by_loser @ (weight * lost).reshape(flat)
            return np.asarray(total).reshape(known.eta.shape)

        of_eta += by_item(sides[3], -sides[1]) + 2 * self._scores * known.eta
        of_tau = np.where(self.learns_rivals[:, None], by_item(-sides[2], sides[0]), 0.0)
        value += self._scores * float(np.sum(known.b**2) + np.sum(known.eta**2) + np.sum(deviation**2))
        _, _, _, above, *below = self.split(theta)
        if below:
            of_above += of_tau + self._rivals
            of_below[0] += self._rivals - of_tau
            return value + self._rivals * float(above.sum() + below[0].sum()), gradient
        of_above += of_tau + 2 * self._rivals * above
        return value + self._rivals * float(np.sum(above**2)), gradient


def _margins(known: Arrays, data: Comparisons) -> tuple[Doubles, Doubles]:
    """Return the winners' margins, and the wedge products of their groups."""
    i, j = data.winner_index, data.loser_index
    wedge = np.sum(known.eta[i] * known.tau[j] - known.eta[j] * known.tau[i], axis=2)
    return known.b[i] - known.b[j] + np.sum(known.xi[data.user_index] * wedge, axis=1), wedge


def fit_variant(train: Comparisons, variant: Variant, scores: float, rivals: float) -> Predict:
    """Fit a variant with given penalties."""
    problem = Problem(train, variant, scores, rivals)
    options = {"maxiter": STEPS, "maxfun": 2 * STEPS}
    found = minimize(problem, problem.start(), jac=True, method="L-BFGS-B", bounds=problem.bounds(), options=options)
    known = problem.arrays(np.asarray(found.x, np.float64))
    return lambda data: np.asarray(expit(_margins(known, data)[0]))


def _unit(name: str, parts: Parts, title: str, seed: int) -> Unit:
    variant = VARIANTS[title]

    def compute() -> Record:
        fits = ((fit_variant(parts.train, variant, scores, MIDDLE), (scores, MIDDLE)) for scores in SCORES)
        predict, chosen = best(fits, parts.validation)
        if variant.straight < variant.groups:
            pairs = [(chosen[0], rivals) for rivals in RIVALS]
            others = [(fit_variant(parts.train, variant, *pair), pair) for pair in pairs]
            predict, chosen = best([(predict, chosen), *others], parts.validation)
        loss = losses(predict(parts.test)) * weights_of(parts.test) / weights_of(parts.test).mean()
        return {"chosen": list(chosen), "weighted": [float(f"{value:.5g}") for value in loss]}

    identity = {
        "format": FORMAT,
        "data": digest(parts.train, parts.validation, parts.test),
        "variant": repr(variant),
        "penalties": [SCORES, MIDDLE, RIVALS],
        "steps": STEPS,
    }
    return Unit(f"alternatives-{name}-{seed}-{title.replace(' ', '_')}", identity, compute)


def alternatives_study(
    folder: Path,
    data_folder: Path,
    *,
    sets: Sequence[str] = (),
    seeds: Sequence[int] = (0,),
    most: int | None = None,
    show_progress: bool = True,
) -> Mapping[tuple[str, str], "Loss"]:
    """Fit every variant to every set and write ``alternatives.md``; arguments as of ``comparisons_study``."""
    units, places = [], []
    for name, path in find_sets(data_folder, sets).items():
        data = Comparisons.read(path, ties="drop")
        if most is not None and len(data) > most:
            data, _ = data.split(test=1 - most / len(data), seed=0)
        titles = [title for title, variant in VARIANTS.items() if len(data.users) > 1 or not variant.judges]
        for seed in seeds:
            parts = parts_of(data, seed, "row")
            units += [_unit(name, parts, title, seed) for title in titles]
            places += [(name, title, seed) for title in titles]
    records = dict(zip(places, run(folder, units, "alternatives", show_progress=show_progress), strict=True))
    gathered: dict[tuple[str, str], list[list[float]]] = {}
    for name, title, seed in places:
        ours, loss = (np.array(records[name, key, seed]["weighted"]) for key in (REFERENCE, title))
        error = (loss - ours).std() / np.sqrt(len(loss))
        gathered.setdefault((name, title), []).append([loss.mean(), (loss - ours).mean(), error])
    table = {key: Loss(*np.mean(entries, axis=0).tolist()) for key, entries in gathered.items()}
    write_whole(folder / "alternatives.md", _table(table) + "\n")
    return table


def _table(table: Mapping[tuple[str, str], Loss]) -> str:
    def cell(name: str, title: str) -> str:
        if (name, title) not in table:
            return ""
        loss, difference, error = table[name, title]
        return f"{loss:.4f}" if title == REFERENCE else f"{difference:+.4f} ± {error:.4f}"

    names = list(dict.fromkeys(name for name, _ in table))
    header = ["set", REFERENCE, *(title for title in VARIANTS if title != REFERENCE)]
    return markdown_table(header, [[name, *(cell(name, title) for title in header[1:])] for name in names], range(1, 7))


@study("comparisons")
@click.option(
    "--sets", callback=listed, help="Only these data sets, with commas between them.  [default: all there are]"
)
def alternatives_command(data_folder: Path | None, output: Path, sets: list[str], quick: bool, quiet: bool) -> Path:
    """Compare ways to write the model: log loss less that of l2 on tau - 1, tau >= 0."""
    if data_folder is None:
        raise click.UsageError("name the folder that holds the comparisons: --data FOLDER, or set SADREC_DATA")
    alternatives_study(output, data_folder, sets=sets, most=1000 if quick else None, show_progress=not quiet)
    return output / "alternatives.md"


if __name__ == "__main__":
    alternatives_command(prog_name="python -m studies.comparisons.alternatives")
