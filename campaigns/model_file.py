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
    """A good model: its file, and a digest of its answers."""

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


def trial(models: list[Good], rng: Random, folder: Path) -> Outcome:
    """Damage the file, load it and ask the model."""
    good = models[int(rng.integers(len(models)))]
    path = folder / "model"
    path.write_bytes(good.content)
    how = ("damaged", "lying", "forged")[int(rng.integers(3))]
    mapped = "posterior" not in good.name and rng.random() < 0.3
    if how == "forged":
        forged(path, rng)
    else:
        path.write_bytes((damaged if how == "damaged" else lying)(good.content, rng))
    where = f"{good.name}, {how}"
    options: dict[str, Any] = {"mmap": True} if mapped else {}
    try:
        with quiet_warnings():
            answers = said(load(good.name, path, **options))
    except ModelFileError as error:
        several = "\n" in str(error)
        return Outcome("other errors", f"{where}: several lines: {error}") if several else Outcome("refused")
    except Exception as error:
        useless = "scale them down", "and finite"  # numbers that nobody can compute with
        if (mapped or how == "forged") and isinstance(error, ValueError) and any(map(str(error).__contains__, useless)):
            return Outcome("refused")
        return Outcome("other errors", f"{where}, {options}: {type(error).__name__}: {error}")
    if answers == good.answers:
        return Outcome("same answers")
    if mapped or how == "forged":
        return Outcome("answered, content not vouched for")
    return Outcome("silent differences", where)


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
