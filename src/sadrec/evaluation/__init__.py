"""How good it is: protocols, metrics, comparison of many models, search over settings."""

from sadrec.evaluation.baselines import EASE, Implicit, Popularity
from sadrec.evaluation.calibration import Calibration, calibration, plot_calibration
from sadrec.evaluation.compare import compare
from sadrec.evaluation.comparison import Comparison
from sadrec.evaluation.consistency import Consistency, consistency_report
from sadrec.evaluation.leave_one_out import evaluate
from sadrec.evaluation.likelihood import log_likelihood
from sadrec.evaluation.protocol import EvaluatedModel, HasMargins, HasProbability, HasScores, as_evaluated
from sadrec.evaluation.result import Evaluation
from sadrec.evaluation.rivalry import Rivalry, rivalry
from sadrec.evaluation.search import PAPER_GRID, Search, choose_factors, search
from sadrec.evaluation.significance import PairedTest, paired_test
from sadrec.evaluation.stated import evaluate_comparisons
from sadrec.evaluation.top_n import evaluate_top_n
from sadrec.evaluation.tune import Range, Tuned, tune

__all__ = [
    "EASE",
    "PAPER_GRID",
    "Calibration",
    "Comparison",
    "Consistency",
    "EvaluatedModel",
    "Evaluation",
    "HasMargins",
    "HasProbability",
    "HasScores",
    "Implicit",
    "PairedTest",
    "Popularity",
    "Range",
    "Rivalry",
    "Search",
    "Tuned",
    "as_evaluated",
    "calibration",
    "choose_factors",
    "compare",
    "consistency_report",
    "evaluate",
    "evaluate_comparisons",
    "evaluate_top_n",
    "log_likelihood",
    "paired_test",
    "plot_calibration",
    "rivalry",
    "search",
    "tune",
]
