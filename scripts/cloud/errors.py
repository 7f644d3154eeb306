"""Errors of requests to the API."""

from benchmark.errors import Failure


class ApiError(Exception):
    """A request that the API refused or failed. The message has the reason, never the token."""

    def __init__(self, request: str, status: int, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{request}: the API answered {status}: {message}")
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class NoAnswerError(Exception):
    """A request without an answer, whose outcome is unknown."""


class StrangeAnswerError(Failure):
    """An answer of success without what it must contain, such as the page of a proxy."""

    def __init__(self, request: str, cause: Exception) -> None:
        super().__init__(
            f"{request}: the API answered with success, but not with what its description promises "
            f"({type(cause).__name__}: {cause}); is a proxy in between?"
        )


def is_temporary(error: ApiError | NoAnswerError) -> bool:
    """Whether a read or delete may simply be retried."""
    return isinstance(error, NoAnswerError) or error.status == 429 or error.status >= 500
