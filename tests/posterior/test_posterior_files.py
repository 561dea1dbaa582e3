"""A posterior as a file."""

import numpy as np
import polars as pl
import pytest

from sadrec import SAD, Interactions
from sadrec.models import ModelFileError
from sadrec.posterior import GibbsSAD
from tests.rewriting import rewrite


def test_saved_is_loaded(posterior, tmp_path):
    path = tmp_path / "answers.posterior"
    posterior.save(path)
    result = GibbsSAD.load(path)
    np.testing.assert_array_equal(result.preference_draws("up", "a", "b"), posterior.preference_draws("up", "a", "b"))
    assert result.leaderboard("round").equals(posterior.leaderboard("round"))
    assert result.predictive_check(number=20).equals(posterior.predictive_check(number=20))
    assert result.settings == posterior.settings
    assert result.get_params() == posterior.get_params()
    assert result.mean_model().preference("up", "a", "b") == posterior.mean_model().preference("up", "a", "b")


def test_what_was_seen_is_kept(tmp_path):
    data = Interactions.from_frame(pl.DataFrame({"user": [5, 5, 7], "item": ["x", "y", "z"]}))
    result = GibbsSAD(factors=1, draws=8, warmup=2, chains=1, num_threads=1).fit(data, show_progress=False)
    result.save(tmp_path / "p")
    loaded = GibbsSAD.load(tmp_path / "p")
    assert loaded.recommend(5)[0].tolist() == ["z"] and loaded.num_threads == 1


def test_a_file_from_before_there_was_a_bias_is_read(answers, tmp_path):
    plain = GibbsSAD(factors=2, draws=8, warmup=2, chains=1, bias=False).fit(answers, show_progress=False)
    plain.save(tmp_path / "p")
    rewrite(tmp_path / "p", lambda arrays, header: header["settings"].pop("bias"))
    again = GibbsSAD.load(tmp_path / "p")
    assert again.settings == plain.settings
    np.testing.assert_array_equal(again.preference("up", "a", "b"), plain.preference("up", "a", "b"))


def test_draws_with_a_bias_that_the_settings_do_not_name_are_refused(posterior, tmp_path):
    posterior.save(tmp_path / "p")
    rewrite(tmp_path / "p", lambda arrays, header: header["settings"].update(bias=False))
    with pytest.raises(ModelFileError, match="do not fit"):
        GibbsSAD.load(tmp_path / "p")


def test_other_and_damaged_files_are_refused(posterior, tmp_path):
    SAD.from_factors([[1.0]], [[1.0], [2.0]]).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a sadrec posterior"):
        GibbsSAD.load(tmp_path / "model")
    posterior.save(tmp_path / "cut")
    (tmp_path / "cut").write_bytes((tmp_path / "cut").read_bytes()[:-100])
    with pytest.raises(ModelFileError):
        GibbsSAD.load(tmp_path / "cut")
    with pytest.raises(FileNotFoundError):
        GibbsSAD.load(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut", "model"]


def test_files_of_equal_posteriors_are_equal_to_the_byte(tmp_path):
    data = Interactions.from_frame(pl.DataFrame({"user": [5, 5, 7], "item": ["x", "y", "z"]}))
    for name in ("one", "two"):
        GibbsSAD(factors=1, draws=8, warmup=2, chains=1).fit(data, show_progress=False).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
