"""Download published files once: cached, verified, written whole, resumed after a failure.

The last is why this is not left to pooch, which starts a broken download again.
"""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
from functools import partial
from http.client import HTTPException
from pathlib import Path

from sadrec._core.folders import user_cache
from sadrec._core.progress import Bar

_CHUNK = 2**16
_SECONDS = 30


class DownloadError(OSError):
    """A published file that could not be fetched; the message says where to put it by hand."""


def cache_folder() -> Path:
    """Return the folder for fetched files: ``SADREC_CACHE``, or else the user's cache."""
    chosen = os.environ.get("SADREC_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache()


def fetch(url: str, md5: str, *, folder: Path | None = None, progress: bool = True) -> Path:
    """Return the cached copy of a file, fetching it first if need be.

    An interrupted download continues where it stopped. The file appears under its name only when it is complete and
    its checksum is right, and is checked again whenever it is used; :class:`DownloadError` says what is wrong.
    """
    folder = cache_folder() if folder is None else folder
    target = folder / url.rsplit("/", 1)[-1]
    if target.exists():
        if (there := _md5(target)) != md5:
            raise DownloadError(
                f"{target} is not the published file: its md5 is {there}, not {md5}; delete it to fetch it again, or "
                "pass its path if it is what you want"
            )
        return target
    part = target.with_name(target.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if part.is_symlink():  # which nobody but a stranger has put there
            part.unlink()
        _receive(url, part, progress=progress)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(
            f"cannot fetch {url} ({reason}): fetch it where there is a network and put it at {target}, or pass its path"
        ) from None
    if (received := _md5(part)) != md5:
        part.unlink()
        raise DownloadError(
            f"{url} is not the published file: its md5 is {received}, not {md5}; try again, or fetch it by hand and "
            f"put it at {target}"
        )
    part.replace(target)
    return target


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()


def _receive(url: str, part: Path, *, progress: bool) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # There is nothing after what we have: it is complete, or wrong, which the checksum tells.
        return
    with response:
        resumed = have > 0 and response.status == 206
        start = have if resumed else 0
        length = int(response.headers.get("Content-Length") or 0)
        total = start + length if length else None
        bar = partial(Bar.wrapattr, initial=start, desc=url.rsplit("/", 1)[-1], disable=not progress)
        with part.open("ab" if resumed else "wb") as file, bar(response, "read", total) as content:
            shutil.copyfileobj(content, file, _CHUNK)
            if total and file.tell() < total:
                raise ConnectionError(f"the connection ended after {file.tell():,} of {total:,} bytes")
