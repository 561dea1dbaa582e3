"""SAD and BPR keep the contract of every estimator."""

from typing import ClassVar

from sadrec import BPR, SAD
from tests.contract import EstimatorContract


class TestSAD(EstimatorContract):
    model = SAD
    settings: ClassVar = {"factors": 6, "iterations": 60, "learning_rate": 0.2, "regularization": 0.001, "blocks": 4}
    another = ("learning_rate", 0.125)

    def learnt(self, model):
        return [model.user_factors, model.item_factors, model.rival_factors]


class TestBPR(TestSAD):
    model = BPR
