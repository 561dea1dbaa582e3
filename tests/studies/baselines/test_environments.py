"""Environments are built once, whole or not at all, and anew when their list changes."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from studies.baselines import BaselineError, RegistryUnreachableError, catalogue, environments, rankfm_source
from studies.baselines import __main__ as command
from studies.baselines.__main__ import baselines
from studies.baselines.environments import Environment, environment_of, install, installed, remove
from studies.baselines.processes import run_logged


def wheel(folder, version, body="answer = 42\n"):
    """Write the smallest package there is, and return the line of a list that asks for it."""
    path = folder / f"tiny-{version}-py3-none-any.whl"
    about = f"tiny-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny.py", body)
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n")
        file.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{about}/RECORD", f"tiny.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"tiny @ {path.as_uri()} --hash=sha256:{digest}\n"


@pytest.fixture(scope="module")
def venv_once(tmp_path_factory):
    """What runs commands, and the second time that it is to make an environment copies the first one: much faster."""
    kept = tmp_path_factory.mktemp("venv") / "made"

    def run(command, log):
        if "venv" not in command:
            return run_logged(command, log)
        if kept.exists():
            shutil.copytree(kept, command[-1], symlinks=True)
            return 0
        code = run_logged(command, log)
        shutil.copytree(command[-1], kept, symlinks=True)
        return code

    return run


@pytest.fixture(params=["uv", "venv"])
def tiny(tmp_path, monkeypatch, request):
    """An environment with one tiny package, for the baseline "svd", in a cache folder of its own."""
    if request.param == "venv":
        monkeypatch.setattr(environments, "find_uv", lambda: None)
        monkeypatch.setattr(environments, "run_logged", request.getfixturevalue("venv_once"))
    elif environments.find_uv() is None:
        pytest.skip("needs uv")
    (tmp_path / "light.txt").write_text(wheel(tmp_path, "1.0"))
    monkeypatch.setenv("SADREC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(environments, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(environments, "ENVIRONMENTS", {"light": Environment("light", ("tiny",), 1)})
    return tmp_path / "light.txt"


def folders():
    return sorted(path.name for path in environments._root().iterdir() if path.is_dir())


def test_an_environment_is_built_once_anew_when_its_list_changes_and_removed(tiny, tmp_path, monkeypatch):
    steps = []
    python = install("svd", steps.append)
    assert python == installed(environment_of("svd")) == installed(environment_of("mf"))
    assert steps == ["creating the environment", "installing the packages", "checking that it works"]
    run = subprocess.run([python, "-I", "-c", "import tiny; print(tiny.answer)"], capture_output=True, check=True)
    assert run.stdout.strip() == b"42"

    with monkeypatch.context() as patch:
        patch.setattr(environments, "_build", lambda *_: pytest.fail("built again"))
        assert install("pmf") == python

    tiny.write_text(wheel(tmp_path, "2.0", "raise RuntimeError('out of order')\n"))
    assert installed(environment_of("svd")) is None
    with pytest.raises(BaselineError, match=r"'light' \(for svd mf pmf .* could not be built(.|\n)*out of order"):
        install("svd")
    assert installed(environment_of("svd")) is None
    assert folders() == []

    tiny.write_text(wheel(tmp_path, "3.0"))
    assert [install("svd").parent.parent.name] == folders()
    assert "removed" in CliRunner().invoke(baselines, ["remove", "svd"]).output
    assert folders() == []
    assert remove("svd") is False
    assert "was not installed" in CliRunner().invoke(baselines, ["remove", "mf"]).output


def test_a_package_with_another_hash_is_refused(tiny):
    tiny.write_text(re.sub("sha256:.{8}", "sha256:00000000", tiny.read_text()))
    with pytest.raises(BaselineError, match=r"(?i)hash"):
        install("svd")
    assert folders() == []


def test_no_connection_is_distinguished_from_other_errors(tiny, monkeypatch):
    tiny.write_text("tiny==1.0 --hash=sha256:" + 64 * "0" + "\n")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    for name in ("PIP_RETRIES", "UV_HTTP_RETRIES"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(RegistryUnreachableError, match=r"baselines install svd` again"):
        install("svd")


def test_a_missing_python_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    old = Environment("recommenders", (), 1, python="3.2")
    with pytest.raises(
        BaselineError, match=r"ncf and vae need Python 3\.2; this is 3\.\d+ and no such Python is on the PATH"
    ):
        environments._base_python(old)


def test_what_needs_no_library_needs_no_environment():
    assert environment_of("ease") is None
    assert install("ease") == Path(sys.executable)
    assert remove("popularity") is False


def test_another_archive_of_rankfm_is_refused(tmp_path):
    def fetch(command):
        target = Path(command[command.index("--dest") + 1])
        target.mkdir()
        (target / "rankfm-0.2.5.tar.gz").write_bytes(b"something else")

    with pytest.raises(BaselineError, match="not the archive we know"):
        rankfm_source.build(Path(sys.executable), tmp_path, fetch)


def test_the_list_shows_every_baseline(tmp_path, monkeypatch):
    monkeypatch.setenv("SADREC_CACHE", str(tmp_path))
    shown = CliRunner().invoke(baselines, ["list"])
    assert shown.exit_code == 0
    for name in catalogue.BASELINES:
        assert f"\n{name} " in "\n" + shown.output
    assert "not installed (recommenders, about 1700 MB)" in shown.output


def test_the_command_installs_a_group_once(monkeypatch):
    commands = []
    monkeypatch.setattr(command, "install", lambda name, report: commands.append(name))
    shown = CliRunner().invoke(baselines, ["install", "svd", "mf", "ease", "fm"])
    assert commands == ["light", "rankfm"]
    assert "light: svd, mf, pmf, implicit-bpr, als can run" in shown.output


def test_the_command_says_why_it_failed(monkeypatch):
    def fail(name, report):
        raise BaselineError("no room")

    monkeypatch.setattr(command, "install", fail)
    shown = CliRunner().invoke(baselines, ["install", "all"])
    assert shown.exit_code == 1
    assert "Error: no room" in shown.output


def test_the_command_names_what_it_does_not_know():
    shown = CliRunner().invoke(baselines, ["install", "sdv"])
    assert shown.exit_code == 2
    assert "there is no baseline 'sdv'" in shown.output
