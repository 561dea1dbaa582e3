"""Answers that do not fit into memory are refused before they are computed."""

import re

import numpy as np
import pytest

from sadrec._core import memory
from sadrec.ranking import Parameters
from sadrec.ranking.fold_in import fold_in, fold_in_comparisons
from sadrec.ranking.pairs import margins
from sadrec.ranking.top_n import ItemIndex
from sadrec.ranking.tournament import tournament

PARAMETERS = Parameters(np.ones((2, 3)), np.ones((40, 3)))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: margins(PARAMETERS, 0, None, None), "the margins of 40 items against 40 rivals needs 25.0 KiB"),
        (lambda: tournament(PARAMETERS, 0, None), "a tournament of 40 items needs 37.5 KiB"),
        (lambda: fold_in(PARAMETERS, [0]), "folding in 1 liked items against 39 negatives each needs 2.7 KiB"),
        (lambda: ItemIndex(np.ones((40, 3))).search(np.ones((5, 3)), 10), "N=10 for 5 users needs 1.2 KiB"),
        (lambda: fold_in_comparisons(PARAMETERS, [0, 1], [2, 3]), "folding in 2 comparisons needs 144 bytes"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(monkeypatch, ask, message):
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda: 100)
    with pytest.raises(ValueError, match=re.escape(message)):
        ask()
