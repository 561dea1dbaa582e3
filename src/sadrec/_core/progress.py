"""Progress bars that no other process can hold up.

All bars of tqdm share a lock with the processes that were forked from one another. Where one of them is killed while it
holds the lock, the others never continue at their next bar, shown or not. The bars of this library have a lock of their
own in every process.
"""

import os
from threading import RLock
from typing import Any, ClassVar
from weakref import WeakSet

from tqdm import tqdm


class Bar(tqdm):  # type: ignore[type-arg]
    """A progress bar whose lock belongs to this process."""

    _lock = RLock()
    _instances: ClassVar[WeakSet[Any]] = WeakSet()


def _renew() -> None:
    Bar._lock = RLock()  # a thread that held it is not in the fork


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew)
