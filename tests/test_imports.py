"""What is imported when: a start should not pay for what it does not use."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sadrec

SLOW = {"polars", "scipy", "numba", "pandas", "pyarrow"}


def loaded_by(program):
    """Return which of the slow libraries a program loads."""
    code = f"{program}\nimport sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return SLOW & set(out.split())


@pytest.mark.parametrize("program", ["import sadrec", "from sadrec.training.settings import TrainingSettings"])
def test_nothing_slow_is_imported_before_it_is_needed(program):
    assert not loaded_by(program)


def test_the_public_names_are_there_all_the_same():
    assert {"SAD", "BPR", "Interactions", "Comparisons"} <= set(dir(sadrec))
    assert loaded_by("from sadrec import SAD, BPR, Interactions, Comparisons, data, models; SAD.fit; data.load")
    with pytest.raises(AttributeError, match="no attribute 'SAT'"):
        sadrec.SAT  # noqa: B018


GUESTS = ("cluster", "serving", "integrations", "evaluation", "cli")
GUEST_FILES = [path for guest in GUESTS for path in sorted((Path(sadrec.__file__).parent / guest).rglob("*.py"))]
OF_OTHERS = {"_asdict", "_fields", "_replace", "_exit", "_serve", "_start_asgi_task"}
"""Names of named tuples, of `os` and of uvicorn."""


def private_names(source, guest):
    """Return the private names that a module of a guest takes from elsewhere: of modules, and of objects."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] not in (
            ["sadrec", guest],
            ["sadrec", "_core"],
        ):
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            names += [part for part in parts if part.startswith("_") and not part.endswith("__")]
        elif isinstance(node, ast.Attribute) and not (
            isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        ):
            names += [node.attr] if node.attr.startswith("_") and not node.attr.endswith("__") else []
    return [name for name in names if name not in OF_OTHERS]


@pytest.mark.parametrize("path", GUEST_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_guests_use_no_private_name(path):
    guest = path.relative_to(Path(sadrec.__file__).parent).parts[0]
    assert not private_names(path.read_text(), guest)


@pytest.mark.parametrize(
    "source",
    [
        "model._state",
        "f(model)._rows()",
        "from sadrec.data._assemble import arrange",
        "from sadrec.models.sad import _best",
    ],
)
def test_private_names_are_noticed(source):
    assert private_names(source, "serving")


TESTS = Path(__file__).parent
# docs/api/ranking.md describes the modules of ranking, too
DOORS = {"sadrec", "sadrec.training.engine"} | {
    f"sadrec.{path.name}" for path in Path(sadrec.__file__).parent.iterdir()
}
REACHING = {
    "cli/test_commands.py", "cluster/test_scheduler.py", "cluster/test_shuffle.py", "conftest.py",
    "models/test_comparisons.py", "models/test_fit.py", "models/test_user_balance.py", "serving/test_explorer.py",
    "serving/test_service.py", "studies/test_calibration.py", "studies/test_netflix.py", "test_memory.py",
    "training/variational/test_learners.py",
}  # fmt: skip
"""Tests that compare with a part of another folder, or put something else in its place."""


def inside(module, name):
    """Return what an import takes from behind a front door: its full name, or nothing."""
    if not module.startswith("sadrec") or module.startswith(("sadrec.integrations.", "sadrec._core")):
        return ""
    if module in DOORS:
        private = name.startswith("_") and not name.endswith("__")
        file = Path(sadrec.__file__).parent.joinpath(*module.split(".")[1:], f"{name}.py")
        part = file.is_file() and not callable(getattr(import_module(module), name, None))
        return f"{module}.{name}" if private or part else ""
    return f"{module}."


def test_tests_use_front_doors_and_what_they_mirror():
    """A part can then be rewritten with the tests of its own folder."""
    reaching = set()
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS)
        own = f"sadrec.{place.parts[0]}." if len(place.parts) > 1 else "nothing"
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        taken_inside = [inside(node.module or "", alias.name) for node in imports for alias in node.names]
        if any(name and not name.startswith((own, "sadrec.ranking.")) for name in taken_inside):
            reaching.add(place.as_posix())
    assert reaching == REACHING
