"""Turns signals that stop a process into an exception, at safe moments."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from benchmark.errors import Interrupted

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Raises Interrupted in the main thread at the first such signal; later ones are ignored.

    Inside deferred(), it is raised when the block ends, so that a process just started is not lost.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._raised = False
        self._deferring = 0

    def install(self) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, self._handle)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        self._deferring += 1
        try:
            yield
        finally:
            self._deferring -= 1
        self._raise_if_due()

    def ignore_from_now(self) -> None:
        """For cleaning up, which must not be interrupted and has deadlines of its own."""
        self._raised = True

    def listen_again(self) -> None:
        """After cleaning up, if the script continues; raises Interrupted if a signal came in between."""
        self._raised = False
        self._raise_if_due()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received = number
        self._raise_if_due()

    def _raise_if_due(self) -> None:
        if self._received is not None and not self._raised and self._deferring == 0:
            self._raised = True
            raise Interrupted(self._received)
