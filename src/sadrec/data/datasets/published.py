"""What was published about the named data sets, to compare with what was read."""

import logging

from sadrec.data.describe import Description

log = logging.getLogger(__name__)

PUBLISHED = {
    "movielens-1m": Description(6_040, 3_706, 1_000_209, 0.9553, (20, 23, 96, 556, 2_314)),
    "movielens-100k": Description(943, 1_682, 100_000, 1 - 100_000 / (943 * 1_682)),
    "netflix": Description(10_000, 8_693, 1_044_318, 0.9880, (1, 6, 46, 400, 8_237)),
    "food-com": Description(17_482, 1_358, 145_431, 0.9939, (1, 1, 4, 30, 878)),
}
"""The paper's table of properties; for MovieLens 100K the figures of its makers."""


def report(name: str, found: Description, *, sampled: bool = False) -> None:
    """Log the counts beside the published ones; a difference is a warning unless the data are a random sample."""
    published = PUBLISHED[name]
    counts = [
        f"{getattr(found, what):,} {what} (published {getattr(published, what):,})"
        for what in ("users", "items", "ratings")
    ]
    same = all(getattr(found, what) == getattr(published, what) for what in ("users", "items", "ratings"))
    log.log(logging.INFO if same or sampled else logging.WARNING, "%s: %s", name, ", ".join(counts))
