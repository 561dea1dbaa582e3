"""The folder for caches on each operating system."""

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return this user's folder for compiled kernels and fetched data."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home("AppData/Local")) / "sadrec" / "Cache"
    if sys.platform == "darwin":
        return Path(_home("Library/Caches")) / "sadrec"
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or _home(".cache")) / "sadrec"


def _home(folder: str) -> str:
    return os.path.expanduser(f"~/{folder}")  # noqa: PTH111  (Path.home() raises where a user has no home)
