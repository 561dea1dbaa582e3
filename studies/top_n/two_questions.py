"""``python -m studies.top_n.two_questions``: lists over the whole catalogue and the paper's measures, by one model.

The same settings are fitted to the 80 % part of a random split, for nDCG@10, and to a leave-one-out set, for the
paper's M1, M2 and order inside ratings.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sadrec import SAD
from sadrec.evaluation import evaluate, evaluate_top_n
from studies._options import MOVIELENS, load_ratings, study
from studies._tools import markdown_table

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "default settings": {},
    "negatives as drawn": {"loss": "pairwise", "negative_candidates": 1, "regularization": 0.005, "user_balance": 0.0},
    "bias, user_balance 0.3, l2 0.011": {
        "loss": "pairwise",
        "bias": True,
        "user_balance": 0.3,
        "regularization": 0.011,
    },
    "length 1.6": {"advanced": {"length": 1.6}},
    "order_share 0.05": {"order_share": 0.05},
    "order_share 0.2": {"order_share": 0.2},
    "order_share 0.34": {"order_share": 0.34},
}
"""What is compared, by name."""


@study("two-questions")
@click.option("--dataset", type=click.Choice(MOVIELENS), default="movielens-1m", show_default=True)
def two_questions_command(data_folder: Path | None, dataset: str, num_threads: int) -> None:
    """Measure lists and the paper's recommendation measures for the same settings."""
    data = load_ratings(dataset, data_folder)
    rows = []
    for title, settings in SETTINGS.items():
        model = SAD(num_threads=num_threads).set_params(**settings)
        train, test = data.split(test=0.2, seed=0)
        lists = evaluate_top_n(model.fit(train, show_progress=False), train, test, 10)
        train, test = data.leave_one_out(seed=0)
        pairs = evaluate(model.fit(train, show_progress=False), train, test)
        shares = (f"{100 * pairs[name]:.1f}" for name in ("m1", "m2", "unequal_accuracy"))
        rows.append([title, f"{lists['ndcg']:.4f}", *shares])
        click.echo(" ".join(rows[-1]), err=True)
    headings = ["SAD", "ndcg@10", "m1 (%)", "m2 (%)", "unequal_accuracy (%)"]
    click.echo(markdown_table(headings, rows, numbers=(1, 2, 3, 4)))


if __name__ == "__main__":
    two_questions_command(prog_name="python -m studies.top_n.two_questions")
