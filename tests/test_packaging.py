"""What is shipped: the wheel holds the library and nothing of the laboratory."""

import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with a wheel and a source archive of this very tree."""
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("dist")
    for builder in (WheelBuilder, SdistBuilder):
        list(builder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    return folder


def test_the_wheel_holds_the_library_only(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"sadrec"}
    assert "sadrec/py.typed" in names
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "sadrec").rglob("*.py")}
    assert modules <= set(names)
    page = {
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "sadrec" / "serving" / "explorer").iterdir()
    }
    assert "sadrec/serving/explorer/index.html" in page <= set(names)


def test_the_source_archive_has_the_studies_too(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        folders = {name.split("/")[1] for name in file.getnames()}
        assert any(name.endswith("studies/baselines/requirements/light.txt") for name in file.getnames())
    assert {"src", "tests", "studies", "benchmarks", "docs"} <= folders
