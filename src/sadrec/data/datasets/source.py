"""The files of a published data set, whether in a folder, a zip or a tar."""

import fnmatch
import gzip
import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tar\.\w+)$")
_DAMAGE = (zipfile.BadZipFile, tarfile.ReadError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


class Stream:
    """A file being read; damage is said of the archive it is in."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or all."""
        with refusing_damage(self._path):
            return self._file.read(size)


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn every error of a damaged archive into one kind."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged or incomplete ({error}): fetch it again") from None
    except RuntimeError as error:  # a zip with a password, or packed in a way that Python does not know
        raise ValueError(f"{path} cannot be unpacked here ({error}): unpack it and name the folder") from None


class Source:
    """Files by name, in a folder, in an archive, or a single one.

    Parameters
    ----------
    path
        A folder (searched with its subfolders), a .zip, a .tar (also compressed), or a file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        if not self.path.exists():
            raise FileNotFoundError(f"there is no {self.path}")
        if self.path.is_file() and _ARCHIVE.search(self.path.name) and not (self._is_zip or self._is_tar):
            raise ValueError(f"{self.path} is damaged or incomplete: fetch it again")

    @property
    def _is_tar(self) -> bool:
        return self.path.is_file() and tarfile.is_tarfile(self.path)

    @property
    def _is_zip(self) -> bool:
        return self.path.is_file() and zipfile.is_zipfile(self.path)

    @cached_property
    def names(self) -> list[str]:
        """The names of all files, sorted; a compressed archive is read to its end for them, so once."""
        if self.path.is_dir():
            return sorted(str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.is_file())
        with refusing_damage(self.path):
            if self._is_zip:
                with zipfile.ZipFile(self.path) as archive:
                    return sorted(name for name in archive.namelist() if not name.endswith("/"))
            if self._is_tar:
                with tarfile.open(self.path) as tar:
                    return sorted(member.name for member in tar if member.isfile())
        return [self.path.name]

    def find(self, *patterns: str) -> list[str]:
        """Return the files whose own name fits one of the patterns, sorted by it."""
        fits = [name for name in self.names if any(fnmatch.fnmatch(Path(name).name, pattern) for pattern in patterns)]
        return sorted(fits, key=lambda name: Path(name).name)

    def one(self, *patterns: str) -> str:
        """Return the one file that fits, refusing none and several."""
        fits = self.find(*patterns)
        wanted = " or ".join(patterns)
        if not fits:
            shown = ", ".join(self.names[:10]) or "nothing"
            raise FileNotFoundError(f"{self.path} holds no {wanted}; it holds {shown}")
        if len(fits) > 1:
            raise ValueError(f"{self.path} holds several of {wanted}: {', '.join(fits[:5])}; name the right one")
        return fits[0]

    def streams(self, names: list[str]) -> Generator[Stream, None, None]:
        """Open the named files one after the other, in the order of the archive where it is a tar."""
        if self.path.is_dir():
            for name in names:
                with (self.path / name).open("rb") as file:
                    yield Stream(file, self.path)
        elif self._is_zip:
            with zipfile.ZipFile(self.path) as archive:
                for name in names:
                    with refusing_damage(self.path):
                        member = archive.open(name)
                    with member:
                        yield Stream(member, self.path)
        elif self._is_tar:
            wanted = set(names)
            with tarfile.open(self.path) as tar:
                for entry in tar:
                    content = tar.extractfile(entry) if entry.name in wanted else None
                    if content is not None:
                        yield Stream(content, self.path)
        else:
            with self.path.open("rb") as file:
                yield Stream(file, self.path)

    def read(self, name: str) -> bytes:
        """Return the content of one file."""
        for stream in self.streams([name]):
            return stream.read()
        raise FileNotFoundError(f"{self.path} holds no {name}")

    def titles(self, name: str, separator: str, place: int) -> dict[int, str]:
        """Return the titles in a small file: lines in Latin-1 with an id first and the title at ``place``.

        Titles hold commas, colons and quotation marks.
        """
        titles = {}
        for number, line in enumerate(self.read(name).decode("latin-1").splitlines(), 1):
            if line:
                identifier, *fields = line.split(separator, 2)
                if not identifier.strip().isdecimal() or len(fields) < place:
                    raise ValueError(f"line {number} of {name} in {self.path} is not an id and a title: {line[:60]!r}")
                titles[int(identifier)] = fields[place - 1]
        return titles

    @contextmanager
    def as_file(self, name: str) -> Iterator[Path]:
        """Give one file as a file on disk, for as long as the context lasts."""
        if self.path.is_dir():
            yield self.path / name
        elif not (self._is_zip or self._is_tar):
            yield self.path
        else:
            with tempfile.TemporaryDirectory(prefix="sadrec-") as folder:
                copy = Path(folder) / Path(name).name
                with closing(self.streams([name])) as streams, copy.open("wb") as file:
                    shutil.copyfileobj(next(streams), file, 2**20)
                try:
                    yield copy
                except (ValueError, OSError) as error:  # the copy will be gone: name what it was made from
                    raise type(error)(str(error).replace(str(copy), f"{name} in {self.path}")) from None
