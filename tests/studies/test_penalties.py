"""The study of penalties: its powers mean what they say."""

from click.testing import CliRunner

from sadrec import SAD
from sadrec.data import simulate
from studies.simulation import penalties
from studies.simulation.penalties import Trial, penalties_command, penalties_study


def test_the_powers_of_the_default_rule_give_the_default_fit():
    simulation = simulate("sim2", missing=0.8, seed=100)
    model = SAD(factors=5, solver="sgd", advanced={"adaptive": True}, random_state=100, num_threads=1).fit(
        simulation.comparisons
    )
    error, sparsity = Trial("sim2", 80, l2_power=1.0, l1_power=0.25, seed=100).run()
    expected = ((penalties.preferences(model.state.parameters) - simulation.X) ** 2).mean() / simulation.X.var()
    assert abs(error - expected) < 1e-3
    assert sparsity == penalties.sparsity(model.rival_factors)


def test_penalties_that_follow_the_data_beat_fixed_ones_when_little_is_known():
    fixed, followed = (Trial("sim2", 80, power, 0.25 * power, seed=101).run()[0] for power in (0.0, 1.0))
    assert followed < 0.8 * fixed


def test_the_table_has_a_row_for_every_pair_of_powers(monkeypatch):
    monkeypatch.setattr(Trial, "run", lambda trial: (trial.l2_power, float(trial.seed)))
    table = penalties_study(2, missing=(80, 90), show_progress=False)
    assert len(table) == 2 * 2 * 3 * 3
    assert (table["relative_mse"] == table["l2_power"]).all()
    assert table["sparsity"].unique().to_list() == [100.5]
    result = CliRunner().invoke(penalties_command, ["--seeds", "1"], catch_exceptions=False)
    assert result.output.count("\n| sim") == 2 * 3 * 3
