"""Errors of requests to the API."""


class ApiError(Exception):
    """A request that the API refused or failed. The message has the reason, never the token."""

    def __init__(self, request: str, status: int, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{request}: the API answered {status}: {message}")
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class NoAnswerError(Exception):
    """A request without an answer, whose outcome is unknown."""


def is_temporary(error: ApiError | NoAnswerError) -> bool:
    """Whether a read or delete may simply be retried."""
    return isinstance(error, NoAnswerError) or error.status == 429 or error.status >= 500
