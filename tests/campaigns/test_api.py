"""Questions to the service: what counts as an answer, and as a question."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

from campaigns import api


def test_an_operation_that_cannot_be_asked_is_told_instead_of_asked_for_ever(tmp_path):
    pytest.importorskip("schemathesis")
    operation = SimpleNamespace(label="GET /nothing", as_strategy=lambda generation_mode: st.nothing())
    outcome = api.trial([operation], np.random.default_rng(0), tmp_path)
    assert outcome.word == "undocumented" and "GET /nothing, positive: no well-formed question" in outcome.detail
