"""The study of the sampler: quick, resumed, and with all its tables."""

from click.testing import CliRunner

from studies.posterior import study
from studies.posterior.__main__ import posterior_command


def test_the_command_writes_the_tables_of_the_parts_asked_for_and_computes_nothing_twice(tmp_path, monkeypatch):
    monkeypatch.delenv("SADREC_DATA", raising=False)
    arguments = ["--only", "coverage", "--quick", "--quiet", "-o", str(tmp_path)]
    result = CliRunner().invoke(posterior_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "| learnt | 2 |" in result.output and "correlation with truth" not in result.output
    monkeypatch.setattr(study, "GibbsSAD", None)
    again = CliRunner().invoke(posterior_command, arguments, catch_exceptions=False)
    assert again.output == result.output


def test_without_data_no_real_comparisons_are_predicted():
    parts = {part for part, _ in study.pieces(study.Length(), None)}
    assert parts == {"convergence", "coverage"}
