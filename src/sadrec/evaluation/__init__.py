"""Evaluation: protocols, metrics, comparison of models, tuning, simple baselines."""

from sadrec._core.settings import Span
from sadrec.evaluation._running import data_fingerprint
from sadrec.evaluation.baselines import EASE, Popularity
from sadrec.evaluation.compare import compare
from sadrec.evaluation.compare_result import CompareResult
from sadrec.evaluation.compare_with_bpr import BPRComparison, compare_with_bpr
from sadrec.evaluation.comparisons import evaluate_comparisons
from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.proposals import grid_points
from sadrec.evaluation.protocol import EvaluatedModel, HasMargins, HasProbability, HasScores, as_evaluated
from sadrec.evaluation.result import Evaluation
from sadrec.evaluation.significance import PairedTest, paired_test
from sadrec.evaluation.tables import measure_of
from sadrec.evaluation.top_n import evaluate_top_n
from sadrec.evaluation.tune import tune
from sadrec.evaluation.tune_result import TuneResult

__all__ = [
    "EASE",
    "BPRComparison",
    "CompareResult",
    "EvaluatedModel",
    "Evaluation",
    "HasMargins",
    "HasProbability",
    "HasScores",
    "PairedTest",
    "Popularity",
    "Span",
    "TuneResult",
    "as_evaluated",
    "compare",
    "compare_with_bpr",
    "evaluate",
    "evaluate_comparisons",
    "evaluate_top_n",
    "grid_points",
    "paired_test",
    "tune",
]
