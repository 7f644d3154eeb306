"""What can go wrong between these scripts and the cloud."""


class ApiError(Exception):
    """A request the API refused, or could not do; the message says which and why, never with the token."""

    def __init__(self, request: str, status: int, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(f"{request}: the API answered {status}: {message}")
        self.status = status
        self.message = message
        self.retry_after_seconds = retry_after_seconds


class NoAnswerError(Exception):
    """A request without an answer: whether it was done is unknown."""


# Reading and removing may simply be repeated after these.
def is_temporary(error: ApiError | NoAnswerError) -> bool:
    return isinstance(error, NoAnswerError) or error.status == 429 or error.status >= 500
