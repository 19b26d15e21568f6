"""Ctrl-C, as a request to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from .. import core


@contextlib.contextmanager
def ctrl_c(stop: core.Stop) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop; the second one raises.

    This only happens in the main thread, where signals arrive, and while Python's
    default handler is installed. A program's own handler is left in place.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            signal.default_int_handler(number, frame)
        stop.request()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
