"""Polls until something is done, at most until a deadline."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from benchmark.errors import Failure

T = TypeVar("T")


@dataclass(frozen=True)
class Polling:
    """Pause between two polls and the time after which to fail, both in seconds."""

    pause_seconds: float = 3.0
    wait_seconds: float = 600.0

    def until(self, what: str, poll: Callable[[], T | None]) -> T:
        """Polls until there is a value; raises Failure after the time, naming what was waited for."""
        deadline = self.deadline(what)
        while True:
            found = poll()
            if found is not None:
                return found
            deadline.pause(self.pause_seconds)

    def deadline(self, what: str) -> "Deadline":
        return Deadline(what, self.wait_seconds, time.monotonic() + self.wait_seconds)


@dataclass(frozen=True)
class Deadline:
    """The moment after which waiting fails."""

    what: str
    seconds: float
    moment: float

    def pause(self, seconds: float) -> None:
        """Sleeps, at most until the moment; raises Failure once it has passed."""
        left = self.moment - time.monotonic()
        if left <= 0:
            raise Failure(f"{self.what}: not done within {self.seconds:g} s")
        time.sleep(min(seconds, left))

    def pause_as_asked(self, seconds: float) -> None:
        """Sleeps as long as the other side asks for; raises Failure if that would last beyond the moment."""
        if time.monotonic() + seconds > self.moment:
            raise Failure(
                f"{self.what}: asked to wait for {seconds:g} s, which is beyond the limit of "
                f"{self.seconds:g} s (--wait-seconds)"
            )
        time.sleep(seconds)
