"""Ctrl-C at a safe point: not while threads are at work on the parameters or a file is half written."""

import signal
import threading
from concurrent.futures import Executor
from types import FrameType


class SafeInterrupt:
    """While this is active, Ctrl-C is noted, and :meth:`check` raises KeyboardInterrupt where nothing can break.

    A second Ctrl-C raises at once. Outside the main thread, or where the program has a handler of its own, nothing
    is changed.
    """

    def __init__(self) -> None:
        self._noted = False
        self._active = False

    def __enter__(self) -> "SafeInterrupt":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._active = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._active = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._noted:
            raise KeyboardInterrupt


def join(pool: Executor) -> None:
    """End a pool when no thread of it is at work any more, however often that is interrupted; then raise the last."""
    interruption: BaseException | None = None
    while True:
        try:
            pool.shutdown(wait=True, cancel_futures=True)
            break
        except BaseException as error:
            interruption = error
    if interruption is not None:
        raise interruption
