"""How a measure is shown: its label, whether it is a share, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """How one measure is shown.

    Attributes
    ----------
    name
        Its key in a result.
    label
        What tables and pictures call it.
    share
        Whether it is a share, shown in per cent.
    better
        1 when more is better, -1 when less is, 0 when neither.
    """

    name: str
    label: str
    share: bool
    better: int

    @property
    def heading(self) -> str:
        """The label with its unit."""
        return f"{self.label} (%)" if self.share else self.label

    def shown(self, value: float) -> float:
        """Return the value in the unit it is shown in."""
        return 100.0 * value if self.share else value


_KNOWN = {
    measure.name: measure
    for measure in (
        Measure("mean_margin", "mean x", False, 1),
        Measure("match", "match", True, 1),
        Measure("match_per_user", "per user", True, 1),
        Measure("unequal_accuracy", "unequal pairs", True, 1),
        Measure("m1", "M1", True, 1),
        Measure("m2", "M2", True, 1),
        Measure("m_margin", "M mean margin", True, 1),
        Measure("sampled_auc", "AUC", True, 1),
        Measure("brier", "Brier", False, -1),
        Measure("log_loss", "log loss", False, -1),
        Measure("rated_brier", "Brier (ratings)", False, -1),
        Measure("rated_log_loss", "log loss (ratings)", False, -1),
        Measure("ndcg", "nDCG", False, 1),
        Measure("recall", "recall", False, 1),
        Measure("precision", "precision", False, 1),
        Measure("hit_rate", "hit rate", False, 1),
        Measure("mrr", "MRR", False, 1),
        Measure("map", "MAP", False, 1),
        Measure("coverage", "coverage", False, 1),
        Measure("novelty", "novelty", False, 0),
        Measure("popularity_bias", "popularity bias", False, 0),
        Measure("mean_popularity", "mean popularity", False, 0),
        Measure("gini", "Gini", False, 0),
        Measure("log_likelihood", "log likelihood", False, 1),
    )
}


def measure_of(name: str) -> Measure:
    """Return how a measure is shown; ``"ndcg@10"`` is nDCG at 10, an unknown one is shown as it is named.

    Examples
    --------
    >>> measure_of("ndcg@10").label, measure_of("log_loss").better, measure_of("m1").heading
    ('nDCG@10', -1, 'M1 (%)')
    """
    base, at, length = name.partition("@")
    known = _KNOWN.get(base)
    if known is None:
        return Measure(name, name, False, 0)
    return Measure(name, f"{known.label}{at}{length}", known.share, known.better)
