"""How much longer a fit takes with features of items: ``python benchmarks/features.py --dataset movielens-100k``.

Fits with and without features take turns, each with the default settings and all of its preparation; the ratio of the
median seconds is what counts.
"""

import argparse
import os
import sys
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

from sadrec import SAD

sys.path.insert(0, str(Path(__file__).parents[1]))
from studies.features.data import movielens
from studies.features.splits import warm
from turns import take_turns


def main():
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="movielens-100k", choices=("movielens-100k", "movielens-1m"))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    folder = os.environ.get("SADREC_DATA")
    featured = movielens(given.dataset, None if folder is None else Path(folder))
    train = warm(featured.data, 3).train

    def fit(seeds, **features):
        SAD(num_threads=given.threads, random_state=next(seeds)).fit(train, show_progress=False, **features)

    fits = {"without": partial(fit, count()), "with": partial(fit, count(), item_features=featured.items)}
    seconds = take_turns(fits, given.turns)
    for name, values in seconds.items():
        print(f"{name} features: median {median(values):.2f} s ({min(values):.2f} to {max(values):.2f})")
    ratios = [one / other for one, other in zip(seconds["with"], seconds["without"], strict=True)]
    spread = f"({min(ratios):.2f} to {max(ratios):.2f})"
    print(f"{given.dataset}, {given.threads} thread(s): {median(ratios):.2f} times as long {spread}")


if __name__ == "__main__":
    main()
