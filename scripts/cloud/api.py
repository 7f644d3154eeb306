"""DigitalOcean's API through pydo, with its own rules for retries.

pydo retries any request after 500, 503, 504 and Retry-After, even one that creates, so that a machine could
be created twice. Its retries are therefore off. This module retries reads and deletes; a create only after a
read has shown that it did not succeed after all. pydo also returns the body of some errors instead of raising
an exception, so the status decides here.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.policies import HeadersPolicy, RetryPolicy
from benchmark.errors import Failure, WrongInput
from pydo import Client

from cloud.errors import ApiError, NoAnswerError, is_temporary
from cloud.polling import Deadline, Polling

API_URL = "https://api.digitalocean.com"
PER_PAGE = 200
CONNECT_SECONDS = 10
ANSWER_SECONDS = 60

Json: TypeAlias = dict[str, Any]


class Api:
    """Requests to DigitalOcean. Not thread-safe."""

    def __init__(self, token: str, url: str, polling: Polling) -> None:
        """Plain http is allowed for a fake on this machine only, because it would expose the token."""
        parts = urlsplit(url)
        is_here = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not is_here:
            raise WrongInput(f"--api-url must begin with https://, but is '{url}'")
        self._polling = polling
        self._client = Client(
            token=token,
            endpoint=url.rstrip("/"),
            retry_policy=RetryPolicy.no_retries(),
            authentication_policy=HeadersPolicy({"Authorization": f"Bearer {token}"}),
        )

    def ssh_key(self, fingerprint: str) -> Json:
        get = self._client.ssh_keys.get
        answer = self._read("asking for the ssh key", get, ssh_key_identifier=fingerprint)
        return dict(answer["ssh_key"])

    def sizes(self) -> list[Json]:
        return self._pages("sizes", self._client.sizes.list)

    def droplets(self, tag: str) -> list[Json]:
        return self._pages("droplets", self._client.droplets.list, tag_name=tag)

    def firewalls(self) -> list[Json]:
        return self._pages("firewalls", self._client.firewalls.list)

    def vpcs(self) -> list[Json]:
        return self._pages("vpcs", self._client.vpcs.list)

    def tags(self) -> list[Json]:
        return self._pages("tags", self._client.tags.list)

    def create_tag(self, body: Json, find: Callable[[], Json | None]) -> Json:
        return self._create("tag", self._client.tags.create, body, find)

    def create_vpc(self, body: Json, find: Callable[[], Json | None]) -> Json:
        return self._create("vpc", self._client.vpcs.create, body, find)

    def create_firewall(self, body: Json, find: Callable[[], Json | None]) -> Json:
        return self._create("firewall", self._client.firewalls.create, body, find)

    def create_droplet(self, body: Json, find: Callable[[], Json | None]) -> Json:
        return self._create("droplet", self._client.droplets.create, body, find)

    def delete_droplet(self, droplet_id: int) -> None:
        """Waits for a machine that is still being created; until then the API refuses with 422."""
        request, destroy = f"removing droplet {droplet_id}", self._client.droplets.destroy
        self._delete(request, destroy, _has_pending_event, droplet_id=droplet_id)

    def delete_firewall(self, firewall_id: str) -> None:
        self._delete("removing the firewall", self._client.firewalls.delete, firewall_id=firewall_id)

    def delete_tag(self, tag: str) -> None:
        self._delete("removing the tag", self._client.tags.delete, tag_id=tag)

    def delete_vpc(self, vpc_id: str) -> None:
        """Waits for machines that are still being deleted; until then the API refuses with 403 or 409."""
        self._delete("removing the VPC", self._client.vpcs.delete, _has_members, vpc_id=vpc_id)

    def _pages(self, what: str, operation: Callable[..., Any], **arguments: Any) -> list[Json]:  # noqa: ANN401
        """All elements of a list; the API gives at most 200 at once."""
        elements: list[Json] = []
        page = 1
        while True:
            answer = self._read(f"listing {what}", operation, per_page=PER_PAGE, page=page, **arguments)
            elements += answer[what]
            links = answer.get("links") or {}
            has_next = bool((links.get("pages") or {}).get("next"))
            # The API links a next page beyond the total; following it would never end.
            if not has_next or page * PER_PAGE >= answer["meta"]["total"]:
                return elements
            page += 1

    def _read(self, request: str, operation: Callable[..., Any], **arguments: Any) -> Json:  # noqa: ANN401
        return self._repeat(request, lambda: self._call(request, operation, **arguments))

    def _delete(
        self,
        request: str,
        operation: Callable[..., Any],
        waits_for: Callable[[ApiError], bool] = lambda _: False,
        **arguments: Any,  # noqa: ANN401
    ) -> None:
        def delete() -> Json:
            try:
                return self._call(request, operation, **arguments)
            except ApiError as e:
                # Deleting what does not exist is a success.
                if e.status == 404:
                    return {}
                raise

        self._repeat(request, delete, waits_for)

    def _repeat(
        self, request: str, call: Callable[[], Json], waits_for: Callable[[ApiError], bool] = lambda _: False
    ) -> Json:
        """Prints what it waits for when that changes, because it may take minutes."""
        deadline = self._polling.deadline(request)
        printed = ""
        while True:
            try:
                return call()
            except (ApiError, NoAnswerError) as e:
                if isinstance(e, ApiError) and waits_for(e):
                    if str(e) != printed:
                        print(f"{e}; retrying for up to {deadline.seconds:.0f} s", flush=True)
                        printed = str(e)
                elif not is_temporary(e):
                    raise
                self._pause_after(e, deadline)

    def _create(
        self, what: str, operation: Callable[..., Any], body: Json, find: Callable[[], Json | None]
    ) -> Json:
        """Creates what `find` does not find; checks again first when the outcome of a create is unknown."""
        request = f"creating {what} {body['name']}"
        deadline = self._polling.deadline(request)
        while True:
            found = find()
            if found is not None:
                return found
            try:
                created = self._call(request, operation, body=body)[what]
            except (ApiError, NoAnswerError) as e:
                if not is_temporary(e):
                    raise
                self._pause_after(e, deadline)
                if isinstance(e, NoAnswerError) or e.status != 429:
                    found = self._find_late(find, deadline)
                    if found is not None:
                        return found
            else:
                return dict(created)

    def _find_late(self, find: Callable[[], Json | None], deadline: Deadline) -> Json | None:
        """Returns what an unanswered create has made, which may be listed a little later."""
        for _ in range(3):
            found = find()
            if found is not None:
                return found
            deadline.pause(self._polling.pause_seconds)
        return None

    def _pause_after(self, error: ApiError | NoAnswerError, deadline: Deadline) -> None:
        after = error.retry_after_seconds if isinstance(error, ApiError) else None
        try:
            deadline.pause(self._polling.pause_seconds if after is None else after)
        except Failure as e:
            raise Failure(f"{e}; the last answer: {error}") from error

    def _call(self, request: str, operation: Callable[..., Any], **arguments: Any) -> Json:  # noqa: ANN401
        """One request and its answer, {} where the answer is empty."""
        options: Json = {"connection_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}
        try:
            status, headers, answer = operation(**arguments, **options, cls=_whole_answer)
        except HttpResponseError as e:
            status, headers, answer = _whole_error(request, e)
        except AzureError as e:
            # Without the request's headers, in which the token is.
            raise NoAnswerError(f"{request}: no answer ({type(e).__name__})") from None
        if status >= 400:
            message = answer.get("message") if isinstance(answer, dict) else None
            raise ApiError(request, status, str(message or "no reason given"), _retry_after(headers))
        return answer if isinstance(answer, dict) else {}


def _has_pending_event(error: ApiError) -> bool:
    return error.status == 422 and "pending event" in error.message


def _has_members(error: ApiError) -> bool:
    return error.status in (403, 409)


def _whole_answer(
    pipeline_response: Any,  # noqa: ANN401
    answer: object,
    headers: object,
) -> tuple[int, Mapping[str, str], object]:
    """What pydo calls with each answer that it does not raise."""
    response = pipeline_response.http_response
    return int(response.status_code), response.headers, answer


def _whole_error(request: str, error: HttpResponseError) -> tuple[int, Mapping[str, str], object]:
    """The same of an answer that pydo does raise."""
    response: Any = error.response
    if response is None:
        raise NoAnswerError(f"{request}: no answer ({type(error).__name__})") from None
    try:
        body = response.json()
    except (ValueError, AzureError):
        body = None
    return int(response.status_code), response.headers, body


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from Retry-After, or until ratelimit-reset (epoch seconds); None where neither is given."""
    after = headers.get("Retry-After", "")
    if after.isascii() and after.isdigit():
        return float(after)
    reset = headers.get("ratelimit-reset", "")
    if headers.get("ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return max(0.0, float(reset) - time.time())
    return None
