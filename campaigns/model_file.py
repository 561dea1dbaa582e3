"""Damaged and forged files of models and posteriors: refused in one line, or the same answers.

Of three trials, one damages the bytes of a file, one lets its header say something else, and one writes a well-formed
file with a right checksum and hostile content. The last kind may well be another model: of it only an answer, whatever
it is, or the documented error is asked. So is it for files loaded with ``mmap=True``, whose content is not verified.
"""

from pathlib import Path
from typing import Any, NamedTuple

from campaigns._mutations import damaged, forged, lying
from campaigns._subjects import MODELS, fitted, load, said
from campaigns._trials import Campaign, Outcome, Random, main, quiet_warnings
from sadrec.models import ModelFileError


class Good(NamedTuple):
    """A good file: its content, and what the model in it says."""

    name: str
    content: bytes
    answers: str


def prepare(folder: Path) -> list[Good]:
    """Fit and save a model of each kind."""
    good = []
    with quiet_warnings():
        for name in MODELS:
            path = folder / name
            fitted(name).save(path)
            good.append(Good(name, path.read_bytes(), said(load(name, path))))
    return good


def trial(files: list[Good], rng: Random, folder: Path) -> Outcome:
    """Damage one of the files, load it and ask the model."""
    good = files[int(rng.integers(len(files)))]
    path = folder / "model"
    how = ("damaged", "lying", "forged")[int(rng.integers(3))]
    mapped = good.name != "posterior" and rng.random() < 0.3
    if how == "forged":
        path.write_bytes(good.content)
        forged(path, rng)
    else:
        path.write_bytes((damaged if how == "damaged" else lying)(good.content, rng))
    options: dict[str, Any] = {"mmap": True} if mapped else {}
    try:
        with quiet_warnings():
            answers = said(load(good.name, path, **options))
    except ModelFileError as error:
        several = "\n" in str(error)
        return Outcome("other errors", f"{how}: several lines: {error}") if several else Outcome("refused")
    except Exception as error:
        return Outcome("other errors", f"{good.name}, {how}, {options}: {type(error).__name__}: {error}")
    if answers == good.answers:
        return Outcome("same answers")
    if mapped or how == "forged":
        return Outcome("answered, content not vouched for")
    return Outcome("silent differences", f"{good.name}, {how}")


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
