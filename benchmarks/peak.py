"""How much memory a piece of work takes at its peak, above what was held before. Linux only.

before = measure_from()
...
print(grown(before))
"""

import ctypes
import gc
from pathlib import Path


def memory(what: str) -> int:
    """Return VmRSS (resident now) or VmHWM (at most so far) of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def measure_from() -> int:
    """Give what is free back to the system, forget the peak so far, and return what is resident."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed would otherwise be used again and not be seen to grow
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def grown(before: int) -> int:
    """Return by how much the peak since :func:`measure_from` is above what was resident then."""
    return memory("VmHWM") - before
