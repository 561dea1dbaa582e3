"""How a measure is shown: whether it is a share, and which direction is better. Its heading is its key."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """How one measure is shown.

    Attributes
    ----------
    name
        Its key in a result, and its heading.
    share
        Whether it is a share, shown in per cent.
    better
        1 when more is better, -1 when less is, 0 when neither.
    """

    name: str
    share: bool = False
    better: int = 0

    @property
    def heading(self) -> str:
        """The name with its unit."""
        return f"{self.name} (%)" if self.share else self.name

    @property
    def digits(self) -> int:
        """How many decimals are shown."""
        return 1 if self.share else 3

    def shown(self, value: float) -> float:
        """Return the value in the unit it is shown in."""
        return 100.0 * value if self.share else value


_SHARES = ("match", "match_per_user", "unequal_accuracy", "m1", "m2", "m_margin", "sampled_auc", "accuracy")
_MORE = ("mean_margin", "ndcg", "recall", "precision", "hit_rate", "mrr", "map", "coverage", "log_likelihood")
_LESS = ("brier", "log_loss", "rated_brier", "rated_log_loss")


def measure_of(name: str) -> Measure:
    """Return how a measure is shown; of ``"ndcg@10"`` the part before the @ decides.

    Examples
    --------
    >>> measure_of("ndcg@10").better, measure_of("log_loss").better, measure_of("m1").heading
    (1, -1, 'm1 (%)')
    """
    base = name.partition("@")[0]
    better = 1 if base in (*_SHARES, *_MORE) else -1 if base in _LESS else 0
    return Measure(name, base in _SHARES, better)
