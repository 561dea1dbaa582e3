"""Download published files once: cached, verified, written whole."""

import hashlib
import os
import shutil
import urllib.request
from functools import partial
from http.client import HTTPException
from pathlib import Path

from sadrec._core.files import replacing
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

    The file appears under its name only when it is complete and its checksum is right, and is checked again whenever
    it is used; :class:`DownloadError` says what is wrong.
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
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response, replacing(target) as part:
            length = int(response.headers.get("Content-Length") or 0)
            shown = partial(Bar.wrapattr, desc=target.name, disable=not progress)
            with part.open("wb") as file, shown(response, "read", length or None) as content:
                shutil.copyfileobj(content, file, _CHUNK)
            if (size := part.stat().st_size) < length:
                raise ConnectionError(f"the connection ended after {size:,} of {length:,} bytes")
            if (received := _md5(part)) != md5:
                raise DownloadError(
                    f"{url} is not the published file: its md5 is {received}, not {md5}; try again, or fetch it by "
                    f"hand and put it at {target}"
                )
    except DownloadError:
        raise
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(
            f"cannot fetch {url} ({reason}): fetch it where there is a network and put it at {target}, or pass its path"
        ) from None
    return target


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()
