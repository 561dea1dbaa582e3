"""The files of a published data set, whether in a folder, a zip or a tar."""

import gzip
import lzma
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from sadrec._core.progress import Bar
from sadrec.data._text import expansion_limit, too_large
from sadrec.data.items import Items

_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tar\.\w+)$")
_DAMAGE = (zipfile.BadZipFile, tarfile.ReadError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


@contextmanager
def unpacked(path: Path, needed: tuple[str, ...], also: tuple[str, ...] = ()) -> Iterator[list[list[Path]]]:
    """Yield the files that match each pattern, sorted by name; files of an archive are copied to a temporary folder.

    At least one file fits one of ``needed``. An error about a copy names the archive instead of the temporary folder.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    patterns = (*needed, *also)
    with tempfile.TemporaryDirectory(prefix="sadrec-") as copies:
        if path.is_dir():
            files = names = [file for file in path.rglob("*") if file.is_file()]
        elif zipfile.is_zipfile(path) or tarfile.is_tarfile(path):
            names = _unpack(path, Path(copies), patterns)
            files = [file for file in Path(copies).rglob("*") if file.is_file()]
        elif _ARCHIVE.search(path.name):
            raise ValueError(f"{path} is damaged or incomplete: fetch it again")
        else:
            files = names = [path]
        files.sort(key=lambda file: (file.name, file))
        fitting = [[file for file in files if fnmatch(file.name, pattern)] for pattern in patterns]
        if not any(fitting[: len(needed)]):
            shown = ", ".join(sorted(name.name for name in names)[:10]) or "nothing"
            raise FileNotFoundError(f"{path} holds no {' or '.join(needed)}; it holds {shown}")
        try:
            yield fitting
        except (ValueError, OSError) as error:
            if copies not in str(error):
                raise
            raise type(error)(str(error).replace(copies, str(path))) from None


def _unpack(path: Path, folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Copy the files that fit a pattern out of an archive into a folder; return the names of all files in it."""
    names = []
    size, done = path.stat().st_size, 0
    most = expansion_limit(size)
    bar = Bar(desc=f"unpacking {path.name}", unit="B", unit_scale=True, delay=2, leave=False, disable=None)
    try:
        for name, start in _members(path):
            names.append(Path(name))
            if any(fnmatch(names[-1].name, pattern) for pattern in patterns):
                copy = folder.joinpath(*(part for part in PurePosixPath(name).parts if part not in ("/", "..")))
                copy.parent.mkdir(parents=True, exist_ok=True)
                with start() as content, copy.open("wb") as file:
                    while chunk := content.read(2**20):
                        done += len(chunk)
                        if done > most:
                            raise ValueError(f"{path}: {too_large(size, most)}")
                        file.write(chunk)
                        bar.update(len(chunk))
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again") from None
    except RuntimeError as error:  # a zip with a password, or packed in a way that Python does not know
        raise ValueError(f"{path} cannot be unpacked here ({error}): unpack it and name the folder") from None
    except OSError as error:
        raise OSError(
            f"{path} cannot be unpacked to the temporary folder {folder.parent} ({error.strerror or error}): make room "
            "there, or set TMPDIR to another folder"
        ) from None
    finally:
        bar.close()
    return names


def _members(path: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield the name of each file in an archive, and what opens it."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    yield name, partial(archive.open, name)
    else:
        with tarfile.open(path) as tar:
            for member in tar:
                if member.isfile():
                    yield member.name, partial(tar.extractfile, member)  # type: ignore[misc]


def one_of_a_name(files: list[Path]) -> Path:
    """Return the only file, refusing several."""
    if len(files) > 1:
        raise ValueError(f"there are several files of a name: {', '.join(map(str, files[:5]))}; name the right one")
    return files[0]


def read_titles(file: Path, separator: str, place: int) -> Items:
    """Return the titles in a small file: lines in Latin-1 with an id first and the title at ``place``.

    Titles hold commas, colons and quotation marks.
    """
    titles = {}
    for number, line in enumerate(file.read_text(encoding="latin-1").splitlines(), 1):
        if line:
            identifier, *fields = line.split(separator, 2)
            if not identifier.strip().isdecimal() or len(fields) < place:
                raise ValueError(f"{file}: line {number} is not an id and a title: {line[:60]!r}")
            titles[int(identifier)] = fields[place - 1]
    return Items(titles)
