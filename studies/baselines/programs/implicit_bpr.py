"""BPR of implicit: factors and an item bias, negatives drawn by popularity."""

from .als import as_csr
from .exchange import Fitted, Scores, Settings, Training


def fit(training: Training, settings: Settings) -> Fitted:
    """Fit ``implicit``'s BPR; a score is the inner product plus the item bias."""
    from implicit.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(
        factors=settings["factors"],
        iterations=settings["iterations"],
        learning_rate=settings["learning_rate"],
        regularization=settings["regularization"],
        num_threads=settings["num_threads"],
        random_state=settings["random_state"],
    )
    model.fit(as_csr(training), show_progress=False)

    def scores(start: int, stop: int) -> Scores:
        block: Scores = model.user_factors[start:stop] @ model.item_factors.T
        return block

    trained_on = f"{len(training.indices):,} interactions, each against an item drawn by popularity"
    return Fitted(scores, trained_on, ("implicit",))
