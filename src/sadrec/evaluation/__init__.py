"""How good it is: protocols, metrics, comparison of many models, search over settings."""

from sadrec.evaluation.compare import compare
from sadrec.evaluation.comparison import Comparison
from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.protocol import EvaluatedModel, HasMargins, HasProbability, HasScores, as_evaluated
from sadrec.evaluation.result import Evaluation
from sadrec.evaluation.top_n import evaluate_top_n

__all__ = [
    "Comparison",
    "EvaluatedModel",
    "Evaluation",
    "HasMargins",
    "HasProbability",
    "HasScores",
    "as_evaluated",
    "compare",
    "evaluate",
    "evaluate_top_n",
]
