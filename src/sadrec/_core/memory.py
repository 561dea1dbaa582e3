"""How much memory is free, and the check before much of it is allocated."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

_SMALL = 2**24
"""Sizes up to this are not checked."""


def need(count: int, what: str, remedy: str) -> None:
    """Raise a ValueError if ``count`` bytes are more than the free memory.

    >>> need(2**70, "factors=10**18", "lower factors")
    Traceback (most recent call last):
        ...
    ValueError: factors=10**18 needs 1073741824.0 TiB of memory, and ... free: lower factors
    """
    if count <= _SMALL:
        return
    free = available()
    if free is not None and count > free:
        raise ValueError(f"{what} needs {size(count)} of memory, and {size(free)} are free: {remedy}")


def size(count: int) -> str:
    """Return a number of bytes as people read it.

    >>> size(3 * 2**29)
    '1.5 GiB'
    """
    count = min(count, 2**100)  # more is as much, and no float could hold it
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def available() -> int | None:
    """Return how many bytes this process can still take: of the machine, its control group and ``ulimit``, the least.

    What the system does not tell is left out; None where it tells nothing (Windows).
    """
    limits = [free for free in (_machine(), _control_group(), _address_space()) if free is not None]
    return max(min(limits), 0) if limits else None


def give_back() -> None:
    """Return freed memory to the system, where the C library can (glibc)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _machine() -> int | None:
    lines = _read("/proc/meminfo").splitlines()
    values = {name: 1024 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    if "MemAvailable" in values:
        return values["MemAvailable"] + values.get("SwapFree", 0)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group() -> int | None:
    """Return what is left of the limit of a container; files that are only cached count as free."""
    path = next((line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
    folders = [Path("/sys/fs/cgroup" + path), Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")]
    for folder in folders:
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, usage = _read(folder / most).strip(), _read(folder / used).strip()
            if limit.isdigit() and usage.isdigit():
                cached = next(
                    (line for line in _read(folder / "memory.stat").splitlines() if "inactive_file" in line), "0"
                )
                return int(limit) - int(usage) + int(cached.split()[-1])
    return None


def _address_space() -> int | None:
    """Return what is left of ``ulimit -v``."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _read("/proc/self/statm").split()
    return limit - (int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0)


def _read(path: str | Path) -> str:
    """Return the text of a file, nothing where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
