"""Evidence for the Gibbs sampler: agreement of chains, coverage, calibration, agreement with SGD, choice of prior.

    python -m studies.posterior FOLDER                    # everything, about half an hour on two cores
    python -m studies.posterior FOLDER --only coverage

Every piece of work writes a small JSON file into FOLDER and is not done twice: interrupted, the same command goes on.
The authors' simulation and the sets of comparisons are read from SADREC_DATA; without it the former is simulated anew
and the latter are left out.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import ndtr

from sadrec import SAD, Comparisons
from sadrec.data import Simulation, simulate
from sadrec.posterior import GibbsSAD

PAPER = {"user_scale": 1.0, "item_scale": 1.0, "rival_scale": 1.0, "user_mean": 0.0}
PRIORS = {
    "learnt": {},
    "learnt, tau = 1 (BPR)": {"rival_scale": 0.0},
    "scales learnt, user mean 0": {"user_mean": 0.0},
    "scales learnt, user mean 1": {"user_mean": 1.0},
    "scales 1": PAPER,
    "scales 1, user mean 1": {**PAPER, "user_mean": 1.0},
}


def data_folder():
    """Return the folder with real data, or None."""
    folder = os.environ.get("SADREC_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def sim2(source, missing):
    """Return the authors' simulation, or one of our own by number."""
    folder = data_folder()
    if source == "authors" and folder is not None:
        return Simulation.from_npz(folder / "authors-sim2" / "raw.npz", missing=missing)
    return simulate("sim2", missing=missing, seed=0 if source == "authors" else int(source))


def convergence(source, missing, seed, prior):
    """Sample a simulation at the paper's size; compare chains with each other, with the truth and with SGD."""
    truth = sim2(source, missing)
    said = truth.comparisons
    began = time.perf_counter()
    found = GibbsSAD(factors=5, draws=2000, warmup=1000, chains=4, random_state=seed, **PRIORS[prior])
    found.fit(said, show_progress=False)
    spent = time.perf_counter() - began
    one, other = np.triu_indices(len(said.items), 1)
    user = np.repeat(np.arange(len(said.users)), len(one))
    one, other = np.tile(one, len(said.users)), np.tile(other, len(said.users))
    diagnosis = found.diagnose(None)
    mean, x = found.mean(user, one, other), truth.X[user, one, other]
    model = found.mean_model()
    sgd = SAD(factors=5, random_state=seed).fit(said, show_progress=False).preference(user, one, other)
    adaptive = SAD(factors=5, adaptive=True, random_state=seed).fit(said, show_progress=False)
    low, high = found.interval(user, one, other, 0.9)
    differs = (np.abs(truth.rival_factors - 1) > 0.05).any(axis=1)
    says = found.rival_differs(np.arange(len(said.items)), by=0.5)
    return {
        "seconds": spent,
        "share_r_hat_good": diagnosis.share_good,
        "largest_r_hat": float(diagnosis.r_hat.max()),
        "effective_size": np.quantile(diagnosis.effective_size, [0.0, 0.05, 0.5]).tolist(),
        "correlation_truth": float(np.corrcoef(mean, x)[0, 1]),
        "correlation_sgd": float(np.corrcoef(mean, sgd)[0, 1]),
        "correlation_sgd_adaptive": float(np.corrcoef(mean, adaptive.preference(user, one, other))[0, 1]),
        "sgd_correlation_truth": float(np.corrcoef(sgd, x)[0, 1]),
        "mean_model_correlation": float(np.corrcoef(mean, model.preference(user, one, other))[0, 1]),
        "mean_squared_error": float(np.mean((1.702 * mean - x) ** 2)),
        "coverage_of_logistic_truth": float(((1.702 * low <= x) & (x <= 1.702 * high)).mean()),
        "rival_differs_right": float(((says > 0.5) == differs).mean()),
    }


def draw_truth(kind, rng, users, items, factors):
    """Draw parameters and the outcome of every pair, under the probit."""
    scales = np.abs(rng.normal(size=3)) if kind == "learnt" else np.ones(3)
    mean = rng.normal(size=factors) if kind == "learnt" else 0.0
    xi = mean + scales[0] * rng.normal(size=(users, factors))
    eta = scales[1] * rng.normal(size=(items, factors))
    low = stats.norm.cdf(0, 1, scales[2])
    tau = stats.norm.ppf(low + (1 - low) * rng.random((items, factors)), 1, scales[2])
    if kind == "sim2":
        xi, eta = rng.uniform(-2, 2, xi.shape) / 1.3, rng.uniform(-2, 2, eta.shape) / 1.3
        tau = np.where(rng.random(tau.shape) < 0.14, rng.choice([0.01, 5.0], tau.shape), 1.0)
    one, other = np.triu_indices(items, 1)
    user = np.repeat(np.arange(users), len(one))
    one, other = np.tile(one, users), np.tile(other, users)
    x = ((eta[one] * tau[other] - eta[other] * tau[one]) * xi[user]).sum(axis=1)
    won = rng.random(len(x)) < ndtr(x)
    columns = user, np.where(won, one, other), np.where(won, other, one)
    return Comparisons.from_indices(*columns, users=np.arange(users), items=np.arange(items)), (user, one, other), x


def coverage(kind, number, users=8, items=12, factors=3):
    """Sample one simulated data set; count the true preferences in their 90 % intervals, and rank one of them."""
    rng = np.random.default_rng([{"scales 1": 0, "learnt": 1, "sim2": 2}[kind], number])
    said, asked, x = draw_truth(kind, rng, users, items, factors)
    prior = PAPER if kind == "scales 1" else {}
    found = GibbsSAD(factors=factors, draws=750, warmup=750, chains=2, thin=2, random_state=number, **prior)
    found.fit(said, show_progress=False)
    low, high = found.interval(*asked, 0.9)
    chosen = int(rng.integers(len(x)))
    draws = found.preference(*(int(column[chosen]) for column in asked))
    thinned = draws.reshape(2, -1)[:, ::15].ravel()
    return {
        "coverage": float(((low <= x) & (x <= high)).mean()),
        "width": float((high - low).mean()),
        "rank": int((thinned < x[chosen]).sum()),
        "draws": len(thinned),
        "share_r_hat_good": found.diagnose(None).share_good,
    }


def predicting(name, prior, factors, seed):
    """Hold out a fifth of real comparisons and foretell them."""
    said = Comparisons.read(data_folder() / name / "comparisons.parquet")
    train, test = said.split(test=0.2, seed=seed)
    found = GibbsSAD(factors=factors, draws=500, warmup=1000, chains=4, thin=2, random_state=seed, **PRIORS[prior])
    found.fit(train, show_progress=False)
    ids = test.users[test.user_index], test.items[test.winner_index], test.items[test.loser_index]
    p = found.mean(*ids, of="probability")
    return {
        "log_loss": float(-np.log(p).mean()),
        "accuracy": float(((p > 0.5) + 0.5 * (p == 0.5)).mean()),
        "share_r_hat_good": found.diagnose(1000).share_good,
        "scales": found.drawn.scales.mean(axis=(0, 1)).tolist(),
    }


def pieces():
    """Return all the work: part, arguments."""
    work = [("convergence", ("authors", 0.0, 0, prior)) for prior in ("learnt", "scales 1")]
    work += [("convergence", (source, missing, 1, "learnt")) for source, missing in (("1", 0.0), ("authors", 0.5))]
    work += [("coverage", (kind, number)) for kind in ("scales 1", "learnt", "sim2") for number in range(60)]
    if data_folder() is not None:
        for name in ("llmfao", "passage-crowdbt"):
            work += [("predicting", (name, prior, 8, 0)) for prior in PRIORS]
            work += [("predicting", (name, "learnt", factors, 0)) for factors in (1, 2, 4, 16)]
    return work


def run(folder, only):
    """Do what has not been done; return all records."""
    records = []
    for part, arguments in pieces():
        if only and part not in only:
            continue
        name = "-".join(str(argument).replace(" ", "_").replace(",", "") for argument in arguments)
        path = folder / f"{part}-{name}.json"
        if not path.exists():
            record = {"part": part, "arguments": list(arguments), **globals()[part](*arguments)}
            temporary = path.with_suffix(".part")
            temporary.write_text(json.dumps(record))
            temporary.replace(path)
            print(f"{part} {arguments}", flush=True)
        records.append(json.loads(path.read_text()))
    return records


def table(header, rows):
    """Print a table."""
    if rows:
        print("\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
        for row in rows:
            print("| " + " | ".join(map(str, row)) + " |")


def report(records):
    """Print the tables."""
    rows = []
    for r in records:
        if r["part"] == "convergence":
            source, missing, seed, prior = r["arguments"]
            rows.append([source, f"{missing:.0%}", prior, seed, f"{r['share_r_hat_good']:.1%}"])
            rows[-1] += [f"{r['largest_r_hat']:.3f}", ", ".join(f"{size:.0f}" for size in r["effective_size"])]
            names = ("correlation_truth", "correlation_sgd", "correlation_sgd_adaptive", "sgd_correlation_truth")
            rows[-1] += [f"{r[name]:.3f}" for name in names]
            rows[-1] += [f"{1 - r['mean_model_correlation']:.1e}", f"{r['mean_squared_error']:.2f}"]
            rows[-1] += [f"{r['rival_differs_right']:.0%}", f"{r['seconds']:.0f}"]
    header = [
        "simulation",
        "missing",
        "prior",
        "seed",
        "R-hat <= 1.05",
        "largest",
        "effective draws (least, 5 %, median)",
    ]
    header += ["correlation with truth", "with SGD", "with adaptive SGD", "SGD with truth"]
    table([*header, "1 - correlation of mean model", "MSE", "tau told right", "seconds"], rows)
    rows = []
    covered = [record for record in records if record["part"] == "coverage"]
    for kind in dict.fromkeys(record["arguments"][0] for record in covered):
        some = [record for record in covered if record["arguments"][0] == kind]
        share = np.array([record["coverage"] for record in some])
        error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else float("nan")
        draws, bins = some[0]["draws"], np.linspace(0, 1, 11)
        counts = np.histogram([record["rank"] / draws for record in some], bins)[0]
        # Ranks from 0 to the number of draws do not fill ten bins evenly.
        expected = np.histogram(np.arange(draws + 1) / draws, bins)[0] * (len(some) / (draws + 1))
        p, width = stats.chisquare(counts, expected).pvalue, np.mean([record["width"] for record in some])
        good = np.mean([record["share_r_hat_good"] for record in some])
        rows.append([kind, len(some), f"{share.mean():.1%}", f"{error:.1%}", f"{p:.2f}", f"{width:.2f}", f"{good:.1%}"])
    header = ["truth", "data sets", "coverage of 90 % intervals", "standard error", "ranks uniform: p", "mean width"]
    table([*header, "R-hat <= 1.05"], rows)
    rows = []
    for r in records:
        if r["part"] == "predicting":
            name, prior, factors, _ = r["arguments"]
            rows.append([name, prior, factors, f"{r['log_loss']:.4f}", f"{r['accuracy']:.1%}"])
            rows[-1] += [f"{r['share_r_hat_good']:.1%}", ", ".join(f"{scale:.2f}" for scale in r["scales"])]
    table(["data", "prior", "factors", "held-out log loss", "accuracy", "R-hat <= 1.05", "prior scales"], rows)


def main():
    """Do the work and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pieces are kept")
    parser.add_argument("--only", nargs="*", choices=["convergence", "coverage", "predicting"])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    report(run(arguments.folder, arguments.only))


if __name__ == "__main__":
    main()
