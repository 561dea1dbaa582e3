"""R-hat and effective sample size against ArviZ, and what is handed to it."""

import warnings

import numpy as np
import pytest

from sadrec.posterior.diagnostics import effective_size, r_hat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    arviz = pytest.importorskip("arviz")


def chains(rng, persistence, shift=0.0, count=500):
    noise = rng.normal(size=(4, count, 3))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0]
    for t in range(1, count):
        x[:, t] = persistence * x[:, t - 1] + noise[:, t]
    x[0] += shift
    return x


@pytest.mark.parametrize(("persistence", "shift"), [(0.0, 0.0), (0.9, 0.0), (0.5, 3.0), (-0.4, 0.0)])
def test_r_hat_and_effective_size_agree_with_arviz(persistence, shift):
    x = chains(np.random.default_rng(1), persistence, shift)
    data = arviz.convert_to_dataset({"x": x})
    np.testing.assert_allclose(r_hat(x), arviz.rhat(data)["x"], rtol=1e-6)
    np.testing.assert_allclose(effective_size(x), arviz.ess(data)["x"], rtol=0.05)


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="four draws"):
        r_hat(np.zeros((2, 3, 1)))
    with pytest.raises(ValueError, match="four draws"):
        effective_size(np.zeros((2, 3, 1)))


def test_a_diagnosis_covers_the_comparisons_asked_for(posterior, answers):
    assert len(posterior.diagnose(number=None).r_hat) == len(answers)
    result = posterior.diagnose(number=50)
    assert len(result.r_hat) == 50
    assert 0 <= result.share_good <= 1
    assert "R-hat" in str(result)


def test_arviz_receives_preferences_with_their_names(posterior):
    data = posterior.to_arviz((["up", "round"], ["a", "b"], ["b", "c"]))
    x = data.posterior["preference"]
    assert x.dims == ("chain", "draw", "comparison")
    assert x.shape == (2, 400, 2)
    assert x.coords["comparison"].values[0] == "up: a over b"
    np.testing.assert_allclose(x.values[..., 0].ravel(), posterior.preference_draws("up", "a", "b"))
    assert posterior.to_arviz(number=7).posterior["probability"].shape == (2, 400, 7)
    crowd = posterior.to_arviz((None, "a", ["b", "c"])).posterior["preference"]
    assert crowd.coords["comparison"].values[1] == "everybody: a over c"
    np.testing.assert_allclose(crowd.values[..., 1].ravel(), posterior.preference_draws(None, "a", "c"))
