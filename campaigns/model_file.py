"""Damaged and forged files of models and posteriors, and folders of them: refused in one line, or the same answers.

Of three trials, one damages the bytes of a file, one lets its header say something else, and one writes a well-formed
file with a right checksum and hostile content. The last kind may well be another model: of it only an answer, whatever
it is, or the documented error is asked. So is it for files loaded with ``mmap=True``, whose content is not verified.
Of a model in a folder, one of its files is damaged, or gone; the forged one has the checksum that ``model.json`` names.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from campaigns._mutations import changed_value, damaged, forged, lying
from campaigns._subjects import FOLDER, MODELS, fitted, load, said, save_folder
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings, tree
from sadrec._files import checksum_of, fingerprint
from sadrec.models import ModelFileError
from sadrec.models.shards import MANIFEST


class Good(NamedTuple):
    """A good model: its files, of one file without a name, and what it says."""

    name: str
    files: Mapping[str, bytes]
    answers: str


def prepare(folder: Path) -> list[Good]:
    """Fit and save a model of each kind."""
    good = []
    with quiet_warnings():
        for name in MODELS:
            path = folder / name
            fitted(name).save(path)
            good.append(Good(name, {"": path.read_bytes()}, said(load(name, path))))
        save_folder(folder / FOLDER)
        good.append(Good(FOLDER, tree(folder / FOLDER), said(load(FOLDER, folder / FOLDER))))
    return good


def trial(models: list[Good], rng: Random, folder: Path) -> Outcome:
    """Damage one of the files, load it and ask the model."""
    good = models[int(rng.integers(len(models)))]
    path = folder / "model"
    for name, content in good.files.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
    name = list(good.files)[int(rng.integers(len(good.files)))]
    how = ("damaged", "lying", "forged")[int(rng.integers(3))]
    mapped = "posterior" not in good.name and rng.random() < 0.3
    if name and rng.random() < 0.05:
        how = "gone"
        (path / name).unlink()
    elif name == MANIFEST:
        _change_manifest(path / name, how, rng)
    elif how == "forged":
        forged(path / name, rng)
        if name:
            _name_checksum(path, name)
    else:
        (path / name).write_bytes((damaged if how == "damaged" else lying)(good.files[name], rng))
    where = f"{good.name}{name and f', {name}'}, {how}"
    options: dict[str, Any] = {"mmap": True} if mapped else {}
    try:
        with quiet_warnings():
            answers = said(load(good.name, path, **options))
    except ModelFileError as error:
        several = "\n" in str(error)
        return Outcome("other errors", f"{where}: several lines: {error}") if several else Outcome("refused")
    except Exception as error:
        if how == "forged" and "scale them down" in str(error):  # factors that nobody can compute with
            return Outcome("refused")
        return Outcome("other errors", f"{where}, {options}: {type(error).__name__}: {error}")
    if answers == good.answers:
        return Outcome("same answers")
    if mapped or how == "forged":
        return Outcome("answered, content not vouched for")
    return Outcome("silent differences", where)


def _change_manifest(path: Path, how: str, rng: Random) -> None:
    """Change what a folder says of its files: bytes, values, or values with a right checksum."""
    if how == "damaged":
        path.write_bytes(damaged(path.read_bytes(), rng))
        return
    content = json.loads(path.read_bytes())
    checksum = content.pop("checksum")
    content = changed_value(content, rng)
    if isinstance(content, dict):
        content["checksum"] = fingerprint(content) if how == "forged" else checksum
    path.write_text(json.dumps(content))


def _name_checksum(folder: Path, name: str) -> None:
    """Have the manifest of a folder name the checksum that a file has now."""
    content = json.loads((folder / MANIFEST).read_bytes())
    del content["checksum"]
    for entry in (content["items"], *content["users"]):
        if entry["name"] == name:
            entry["checksum"] = checksum_of(folder / name)
    (folder / MANIFEST).write_text(json.dumps({**content, "checksum": fingerprint(content)}))


CAMPAIGN = Campaign(
    unit="damaged model files",
    kept=("refused", "same answers", "answered, content not vouched for"),
    broken=("silent differences", "other errors"),
    prepare=prepare,
    trial=trial,
    seconds=60,
)

if __name__ == "__main__":
    main(CAMPAIGN, usual=3000)
