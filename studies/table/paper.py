"""The paper's evaluation table: mean and standard deviation over 20 leave-one-out sets, k = 500."""

from __future__ import annotations

from collections.abc import Mapping

from sadrec.data.describe import Description
from sadrec.evaluation.tables import measure_of

PUBLISHED = {
    "movielens-1m": Description(6_040, 3_706, 1_000_209, 0.9553, (20, 23, 96, 556, 2_314)),
    "movielens-100k": Description(943, 1_682, 100_000, 1 - 100_000 / (943 * 1_682)),
    "food-com": Description(17_482, 1_358, 145_431, 0.9939, (1, 1, 4, 30, 878)),
}
"""The paper's table of properties; for MovieLens 100K the figures of its makers."""

MEASURES = ("mean_margin", "match", "match_per_user", "m1", "m2")
Figures = tuple[tuple[float, float], ...]

# Columns as in MEASURES; shares in per cent, as printed.
PAPER: Mapping[str, Mapping[str, Figures]] = {
    "netflix": {
        "SAD": ((0.024, 0.012), (33.7, 0.5), (18.7, 0.3), (83.3, 0.3), (83.9, 0.3)),
        "BPR": ((-0.019, 0.012), (32.6, 0.5), (12.7, 0.3), (81.8, 0.4), (81.7, 0.3)),
        "SVD": ((-0.824, 0.032), (10.1, 0.1), (0.0, 0.0), (2.0, 0.5), (2.1, 0.3)),
        "MF": ((-0.018, 0.058), (8.1, 0.5), (0.0, 0.0), (74.8, 2.6), (45.4, 8.7)),
        "PMF": ((0.003, 0.015), (33.1, 0.3), (26.9, 0.3), (21.1, 0.3), (20.2, 0.3)),
        "FM": ((-0.538, 0.316), (12.9, 0.2), (8.4, 0.1), (86.4, 0.2), (81.6, 0.3)),
        "NCF": ((-0.025, 0.043), (13.1, 4.4), (5.6, 1.2), (86.0, 0.3), (85.9, 2.2)),
        "beta-VAE": ((-0.011, 0.017), (21.1, 0.9), (9.7, 2.1), (35.7, 3.1), (31.0, 5.7)),
    },
    "movielens-1m": {
        "SAD": ((0.120, 0.014), (36.4, 0.6), (29.9, 0.7), (82.9, 0.4), (82.1, 0.4)),
        "BPR": ((0.083, 0.012), (35.7, 0.6), (25.2, 0.6), (77.7, 0.5), (76.9, 0.4)),
        "SVD": ((-0.324, 0.011), (7.0, 0.4), (0.0, 0.0), (3.5, 0.1), (3.1, 0.2)),
        "MF": ((0.024, 0.103), (19.0, 0.5), (0.0, 0.0), (47.8, 1.0), (27.0, 0.7)),
        "PMF": ((0.027, 0.016), (32.7, 0.4), (26.4, 0.4), (27.3, 0.8), (22.8, 0.5)),
        "FM": ((0.103, 0.025), (21.7, 0.3), (18.1, 0.3), (78.8, 0.3), (76.3, 0.4)),
        "NCF": ((-0.241, 0.346), (24.0, 1.9), (14.5, 2.0), (90.4, 1.5), (90.1, 2.1)),
        "beta-VAE": ((-0.120, 0.301), (13.2, 2.1), (10.9, 2.4), (71.0, 0.3), (69.9, 0.7)),
    },
    "food-com": {
        "SAD": ((-0.329, 0.002), (14.9, 0.5), (0.0, 0.0), (24.7, 0.2), (23.9, 0.2)),
        "BPR": ((-1.276, 0.009), (5.9, 0.5), (0.0, 0.0), (23.2, 0.3), (21.3, 0.3)),
        "SVD": ((-5.152, 0.039), (1.1, 0.1), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
        "MF": ((-1.956, 0.161), (6.4, 2.0), (0.0, 0.0), (27.8, 5.5), (24.6, 6.1)),
        "PMF": ((-0.434, 0.031), (4.1, 3.5), (0.0, 0.0), (20.2, 0.6), (21.0, 1.1)),
        "FM": ((-5.324, 0.247), (9.3, 1.7), (0.0, 0.0), (35.9, 0.2), (35.1, 0.3)),
        "NCF": ((-11.362, 0.852), (8.9, 0.7), (0.0, 0.0), (38.2, 4.8), (37.1, 5.5)),
        "beta-VAE": ((-3.127, 0.426), (10.2, 1.1), (0.0, 0.0), (16.3, 3.1), (16.1, 3.7)),
    },
}


def printed(dataset: str, model: str | None, measure: str) -> str:
    """Return a figure as the paper prints it, or nothing.

    >>> printed("food-com", "NCF", "m1"), printed("food-com", None, "m1")
    ('38.2 ± 4.8', '')
    """
    row = PAPER.get(dataset, {}).get(model or "")
    if row is None or measure not in MEASURES:
        return ""
    mean, sd = row[MEASURES.index(measure)]
    digits = 1 if measure_of(measure).share else 3
    return f"{mean:.{digits}f} ± {sd:.{digits}f}"


def best_printed(dataset: str, measure: str) -> tuple[str, float] | None:
    """Return the best of the paper's models on a measure and its figure, or None for other data.

    >>> best_printed("movielens-1m", "m2")
    ('NCF', 90.1)
    """
    rows = PAPER.get(dataset)
    if rows is None:
        return None
    column = MEASURES.index(measure)
    name = max(rows, key=lambda model: rows[model][column][0])
    return name, rows[name][column][0]
