"""Ctrl-C while a study runs: noted, and acted on where the sums are whole and can be saved."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self


class Interruption:
    """Whether the person wants to stop; a second Ctrl-C stops at once, wherever that is."""

    def __init__(self, noted: Callable[[], None]):
        self._noted = noted
        self.asked = False
        self._takes_over = False

    def __enter__(self) -> Self:
        # Only the main thread hears of Ctrl-C, and only where nobody else has taken it over.
        self._takes_over = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._takes_over:
            signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *failed: object) -> None:
        if self._takes_over:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._noted()
