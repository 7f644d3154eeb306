"""Errors that abort a benchmark."""


class WrongInput(Exception):
    """A setting that can never work; the message names it and its limit."""


class Failure(Exception):
    """A step that failed; the message says which, and where to read more."""


class Interrupted(Exception):
    """A signal to stop was received."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"interrupted by signal {signal_number}")
        self.signal_number = signal_number
