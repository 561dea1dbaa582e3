"""What the catalogue promises about the baselines is so."""

import importlib
import re

import pytest

from studies.baselines import BASELINES, Baseline, make
from studies.baselines.environments import ENVIRONMENTS
from studies.baselines.settings import resolve_settings

SPECS = list(BASELINES.values())
NAMES = [spec.name for spec in SPECS]


def test_the_papers_baselines_are_all_there():
    # the seventh, BPR, is our own
    assert [spec.paper for spec in SPECS if spec.paper] == ["SVD", "MF", "PMF", "FM", "NCF", "beta-VAE"]


@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
def test_every_value_of_a_grid_is_allowed(spec):
    for setting, values in spec.grid.items():
        for value in values:
            assert resolve_settings(spec.name, spec.defaults, {setting: value})[setting] == value


@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
def test_defaults_are_allowed_and_complete(spec):
    params = make(spec.name).get_params()
    assert {name: value for name, value in params.items() if name not in ("name", "timeout", "where")} == spec.defaults


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.environment], ids=lambda spec: spec.name)
def test_a_baseline_has_a_program_and_its_library_in_the_list(spec):
    module = importlib.import_module(f"studies.baselines.programs.{spec.program}")
    assert callable(module.fit)
    listed = ENVIRONMENTS[spec.environment].requirements.read_text()
    assert re.search(rf"^(# .*)?{re.escape(spec.library)}(==| )", listed, re.IGNORECASE | re.MULTILINE)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=lambda environment: environment.name)
def test_every_requirement_has_one_exact_version_and_hashes(environment):
    text = re.sub(r"^#.*\n", "", environment.requirements.read_text(), flags=re.MULTILINE)
    for requirement in text.replace("\\\n", "").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]* ( *--hash=sha256:[0-9a-f]{64} *)+", requirement), requirement


def test_what_a_baseline_was_trained_on_depends_on_its_settings():
    assert make("svd").trained_on == "every cell of the matrix: an interaction is 1, any other cell is 0"
    assert "7 empty cells" in make("svd", cells="sampled", zeros=7).trained_on
    assert "weighs 40" in make("als", alpha=40).trained_on


def test_an_unknown_baseline_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no baseline 'sdv': there are popularity, svd, mf"):
        make("sdv")


def test_an_unknown_setting_is_refused_with_the_known_ones():
    with pytest.raises(TypeError, match=r"svd has no setting 'epochs': it has factors, iterations"):
        make("svd", epochs=3)


@pytest.mark.parametrize(
    ("name", "setting", "value", "allowed"),
    [
        ("svd", "factors", 0, "a whole number from 1 up"),
        ("svd", "factors", 2.5, "a whole number from 1 up"),
        ("svd", "iterations", True, "a whole number from 1 up"),
        ("mf", "learning_rate", 0, "a number above 0"),
        ("mf", "learning_rate", float("nan"), "a number above 0"),
        ("mf", "regularization", -1, "a number from 0 up"),
        ("pmf", "cells", "some", "'all' or 'sampled'"),
        ("fm", "regularization", 0, "a number above 0"),
        ("fm", "loss", "hinge", "'bpr' or 'warp'"),
        ("ncf", "layers", [], "a list of layer sizes"),
        ("ncf", "layers", [7, 3], "the first of them even"),
        ("ncf", "layers", "128", "a list of layer sizes"),
        ("vae", "beta", -0.1, "a number from 0 up"),
        ("ease", "regularization", 0, "a number above 0"),
    ],
)
def test_a_value_out_of_range_names_value_and_range(name, setting, value, allowed):
    with pytest.raises(ValueError, match=re.escape(f"{name}: {setting}={value!r} must be ") + f".*{allowed}"):
        make(name, **{setting: value})


def test_settings_change_in_a_copy_only():
    model = make("svd", factors=8, timeout=5, where="environment")
    changed = model.clone(learning_rate=0.1)
    assert isinstance(changed, Baseline)
    assert (changed.settings["factors"], changed.settings["learning_rate"]) == (8, 0.1)
    assert (changed.name, changed.timeout, changed.where) == ("svd", 5, "environment")
    assert model.settings["learning_rate"] == 0.02
    with pytest.raises(TypeError):
        model.settings["factors"] = 9


@pytest.mark.parametrize(("option", "value"), [("timeout", 0), ("where", "elsewhere")])
def test_options_are_checked(option, value):
    with pytest.raises(ValueError, match=f"{option}={value!r} must be"):
        make("svd", **{option: value})
