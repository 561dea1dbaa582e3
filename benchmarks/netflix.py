"""The Netflix Prize at full size: a set of the same shape is written, read and trained on. Linux only.

    python -m benchmarks.netflix write FOLDER             # 480,189 users, 17,770 movies, 1e8 ratings: 2.1 GB of text
    python -m benchmarks.netflix select FOLDER            # the paper's sample of it, as the study reads it
    python -m benchmarks.netflix read FOLDER              # all of it; keeps the matrix beside the text
    python -m benchmarks.netflix fit FOLDER --threads 2   # seconds an epoch at k = 64, and the peak of memory

Ratings are made up; how many a user gives and a movie gets is spread as widely as in the original. The files are in the
format of the original (``combined_data_*.txt``, ``movie_titles.csv``). Peaks are those of the whole process, Python and
libraries included. The bars are 25 seconds and 3 GB.
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

USERS, MOVIES, RATINGS, FILES = 480_189, 17_770, 100_000_000, 4


def peak() -> str:
    """Return the largest resident memory of this process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB at the peak"


def write(folder: Path, ratings: int = RATINGS) -> None:
    """Write made-up ratings, movie by movie."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    users = np.sort(rng.choice(np.arange(1, 2_649_430), USERS, replace=False))
    active = np.cumsum(rng.lognormal(sigma=1.2, size=USERS))
    active /= active[-1]
    sizes = rng.lognormal(sigma=1.9, size=MOVIES)
    sizes = np.minimum(sizes / sizes.sum() * ratings, USERS / 2).astype(int) + 3
    sizes = (sizes * (ratings / sizes.sum())).astype(int) + 1
    days = np.datetime_as_string(np.datetime64("1999-11-11") + np.arange(2_200)).astype("S10")
    rest = np.char.add(
        np.char.add(np.repeat([b",1,", b",2,", b",3,", b",4,", b",5,"], len(days)), np.tile(days, 5)), b"\n"
    )
    names = np.char.mod("%d", users).astype("S7")
    started, written = time.perf_counter(), 0
    for part in range(FILES):
        with (folder / f"combined_data_{part + 1}.txt").open("wb") as file:
            for movie in range(part, MOVIES, FILES):
                chosen = np.empty(0, np.int64)
                while len(chosen) < sizes[movie]:  # active users are drawn again and again
                    drawn = np.searchsorted(active, rng.random(int(sizes[movie] * 1.25)))
                    chosen = np.unique(np.concatenate([chosen, drawn]))
                chosen = rng.permutation(chosen)[: sizes[movie]]
                lines = np.char.add(names[chosen], rest[rng.integers(len(rest), size=len(chosen))])
                file.write(b"%d:\n" % (movie + 1) + b"".join(lines.tolist()))
                written += len(chosen)
    titles = "".join(f"{movie + 1},{1950 + movie % 56},Film no. {movie + 1}\n" for movie in range(MOVIES))
    (folder / "movie_titles.csv").write_text(titles, encoding="latin-1")
    print(f"{written:,} ratings written in {time.perf_counter() - started:.0f} s")


def read(folder: Path, everything: bool) -> None:
    """Read the original files, all of them or the paper's sample, and say what it took."""
    from studies.table.netflix import load_netflix

    started = time.perf_counter()
    data = load_netflix(folder, **({"n_users": None, "max_movie_id": None} if everything else {}))
    print(f"{data!r} read in {time.perf_counter() - started:.0f} s, {peak()}")
    if everything:
        sp.save_npz(folder / "matrix.npz", data.matrix, compressed=False)


def fit(folder: Path, factors: int, threads: int, epochs: int) -> None:
    """Train on the whole matrix, and say what an epoch took."""
    from sadrec import SAD, Interactions

    matrix = sp.load_npz(folder / "matrix.npz")
    data = Interactions.from_csr(matrix)
    del matrix
    print(f"{data!r} in memory, {peak()}", flush=True)
    started, ends = time.perf_counter(), []
    model = SAD(factors, iterations=epochs, loss="pairwise", negative_candidates=1, num_threads=threads)
    model.fit(data, callbacks=[lambda epoch, figures, model: ends.append(time.perf_counter())])
    seconds = np.diff([started, *ends])
    shown = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"k = {factors}, {threads} thread(s): {shown} s for the epochs, the first with all preparations; {peak()}")
    started = time.perf_counter()
    ids, _ = model.recommend(data.users[:10_000], N=10)
    print(f"lists of 10 for {len(ids):,} users in {time.perf_counter() - started:.1f} s, {peak()}")


def main() -> None:
    """Do the step that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["write", "select", "read", "fit"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--ratings", type=int, default=RATINGS)
    given = parser.parse_args()
    if given.step == "write":
        write(given.folder, given.ratings)
    elif given.step == "fit":
        fit(given.folder, given.factors, given.threads, given.epochs)
    else:
        read(given.folder, given.step == "read")


if __name__ == "__main__":
    main()
