"""What the engine refuses, in words, before any cluster is asked."""

import numpy as np
import pytest
from click.testing import CliRunner

from sadrec import SAD, Comparisons
from sadrec.cli import main
from sadrec.cluster import Ray
from tests.cluster.scenes import SMALL, clicks, said


def test_more_workers_than_blocks_are_refused():
    with pytest.raises(ValueError, match=r"workers=6 is more than blocks=5.*lower workers or raise blocks"):
        SAD(**SMALL).fit(clicks(), False, engine=Ray(workers=6))


@pytest.mark.parametrize("name", ["workers", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "two"])
def test_numbers_of_workers_and_threads_are_whole(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1"):
        Ray(**{name: value})


def test_what_needs_all_parameters_in_one_place_is_refused():
    data = clicks()
    with pytest.raises(ValueError, match=r"validation and patience need all parameters in one place"):
        SAD(**SMALL).fit(data, False, engine=Ray(), validation=data)
    comparisons = said(data)
    assert isinstance(comparisons, Comparisons)
    with pytest.raises(ValueError, match=r"solver='variational' learns in this process alone: set solver='sgd'"):
        SAD(random_state=0).fit(comparisons, False, engine=Ray())


def test_a_refused_fit_leaves_the_model_as_it_was():
    data = clicks()
    model = SAD(**SMALL).fit(data, False)
    before = model.user_factors.copy()
    with pytest.raises(ValueError, match="more than blocks"):
        model.fit(data, False, engine=Ray(workers=9))
    assert np.array_equal(model.user_factors, before)


def test_only_what_is_gone_is_tried_again():
    errors = pytest.importorskip("ray").exceptions
    from sadrec.cluster.actors import is_loss

    assert all(map(is_loss, (errors.ActorDiedError(), errors.NodeDiedError("gone"), errors.WorkerCrashedError())))
    assert is_loss(errors.ObjectLostError("00" * 28, None, ""))
    assert not is_loss(errors.RayActorError(actor_init_failed=True))
    assert not is_loss(KeyError("a mistake of ours"))


def test_the_command_line_takes_an_engine(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{user},{item}" for user, item in rng.integers(40, size=(300, 2)))
    (tmp_path / "clicks.csv").write_text(f"user,item\n{rows}\n")
    fit = ["fit", str(tmp_path / "clicks.csv"), "-o", str(tmp_path / "m.sad"), "--blocks", "2"]
    answer = CliRunner().invoke(main, [*fit, "--engine", "ray", "--workers", "3"])
    assert answer.exit_code == 1 and "workers=3 is more than blocks=2" in answer.output
    answer = CliRunner().invoke(main, [*fit, "--workers", "3"])
    assert answer.exit_code == 2 and "--workers goes with --engine ray" in answer.output
