"""DigitalOcean's API through pydo, with its own rules for retries.

pydo retries any request after 500, 503, 504 and Retry-After, even one that creates, so that a machine could
be created twice. Its retries are therefore off. This module retries reads and deletes; a create only after a
read has shown that it did not succeed after all. pydo also returns the body of some errors instead of raising
an exception, so the status decides here.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.policies import HeadersPolicy, RetryPolicy
from benchmark.errors import Failure, WrongInput
from pydo import Client

from cloud.errors import ApiError, NoAnswerError, StrangeAnswerError, is_temporary
from cloud.polling import Deadline, Polling
from cloud.resources import Droplet, Firewall, Json, Size, SshKey, Tag, Vpc, VpcMember

API_URL = "https://api.digitalocean.com"
PER_PAGE = 200
CONNECT_SECONDS = 10
ANSWER_SECONDS = 60

T = TypeVar("T")


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

    def ssh_key(self, fingerprint: str) -> SshKey:
        request, get = "asking for the ssh key", self._client.ssh_keys.get
        return self._read(
            request, get, lambda answer: SshKey.of(answer["ssh_key"]), ssh_key_identifier=fingerprint
        )

    def sizes(self) -> list[Size]:
        return self._pages("sizes", self._client.sizes.list, Size.of)

    def droplets(self) -> list[Droplet]:
        """All machines of the account, whatever their tags: one that has lost its tag still costs."""
        return self._pages("droplets", self._client.droplets.list, Droplet.of)

    def firewalls(self) -> list[Firewall]:
        return self._pages("firewalls", self._client.firewalls.list, Firewall.of)

    def vpcs(self) -> list[Vpc]:
        return self._pages("vpcs", self._client.vpcs.list, Vpc.of)

    def vpc_members(self, vpc_id: str) -> list[VpcMember]:
        """What is in a VPC, nothing if it does not exist any more."""
        try:
            return self._pages("members", self._client.vpcs.list_members, VpcMember.of, vpc_id=vpc_id)
        except ApiError as e:
            if e.status == 404:
                return []
            raise

    def tags(self) -> list[Tag]:
        return self._pages("tags", self._client.tags.list, Tag.of)

    def create_tag(self, body: Json, find: Callable[[], Tag | None]) -> Tag:
        return self._create("tag", self._client.tags.create, Tag.of, body, find)

    def create_vpc(self, body: Json, find: Callable[[], Vpc | None]) -> Vpc:
        return self._create("vpc", self._client.vpcs.create, Vpc.of, body, find)

    def create_firewall(self, body: Json, find: Callable[[], Firewall | None]) -> Firewall:
        return self._create("firewall", self._client.firewalls.create, Firewall.of, body, find)

    def create_droplet(self, body: Json, find: Callable[[], Droplet | None]) -> Droplet:
        return self._create("droplet", self._client.droplets.create, Droplet.of, body, find)

    def replace_firewall(self, firewall_id: str, body: Json) -> Firewall:
        """Replaces all rules at once, so that the machines are never without a firewall."""
        request, update = "changing the firewall", self._client.firewalls.update
        return self._read(
            request,
            update,
            lambda answer: Firewall.of(answer["firewall"]),
            firewall_id=firewall_id,
            body=body,
        )

    def tag_droplet(self, tag: str, droplet_id: int) -> None:
        body = {"resources": [{"resource_id": str(droplet_id), "resource_type": "droplet"}]}
        request, assign = f"tagging droplet {droplet_id}", self._client.tags.assign_resources
        self._read(request, assign, lambda _: None, tag_id=tag, body=body)

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

    def _pages(
        self,
        what: str,
        operation: Callable[..., Any],
        parse: Callable[[Json], T],
        **arguments: Any,  # noqa: ANN401
    ) -> list[T]:
        """All elements of a list; the API gives at most 200 at once."""
        elements: list[T] = []
        page = 1

        def parse_page(answer: Json) -> tuple[list[T], bool]:
            total = int(answer["meta"]["total"])
            # Some empty lists are null.
            on_page = [] if answer[what] is None and total == 0 else answer[what]
            if not isinstance(on_page, list):
                raise TypeError(f"{what} is no list")
            links = answer.get("links") or {}
            has_next = bool((links.get("pages") or {}).get("next"))
            # The API links a next page beyond the total; following it would never end.
            return [parse(element) for element in on_page], has_next and page * PER_PAGE < total

        while True:
            on_page, has_next = self._read(
                f"listing {what}", operation, parse_page, per_page=PER_PAGE, page=page, **arguments
            )
            elements += on_page
            if not has_next:
                return elements
            page += 1

    def _read(
        self,
        request: str,
        operation: Callable[..., Any],
        parse: Callable[[Json], T],
        **arguments: Any,  # noqa: ANN401
    ) -> T:
        """A request that may be repeated, and its parsed answer."""
        return self._repeat(
            request, lambda: _parsed(request, self._call(request, operation, **arguments), parse)
        )

    def _delete(
        self,
        request: str,
        operation: Callable[..., Any],
        waits_for: Callable[[ApiError], bool] = lambda _: False,
        **arguments: Any,  # noqa: ANN401
    ) -> None:
        def delete() -> None:
            try:
                self._call(request, operation, **arguments)
            except ApiError as e:
                # Deleting what does not exist is a success.
                if e.status != 404:
                    raise

        self._repeat(request, delete, waits_for)

    def _repeat(
        self, request: str, call: Callable[[], T], waits_for: Callable[[ApiError], bool] = lambda _: False
    ) -> T:
        """Prints what it waits for when that changes, because it may take minutes."""
        deadline = self._polling.deadline(request)
        printed = ""
        while True:
            try:
                return call()
            except (ApiError, NoAnswerError) as e:
                if isinstance(e, ApiError) and waits_for(e):
                    if str(e) != printed:
                        print(f"{e}; retrying for up to {deadline.seconds:g} s", flush=True)
                        printed = str(e)
                elif not is_temporary(e):
                    raise
                self._pause_after(e, deadline)

    def _create(
        self,
        what: str,
        operation: Callable[..., Any],
        parse: Callable[[Json], T],
        body: Json,
        find: Callable[[], T | None],
    ) -> T:
        """Creates what `find` does not find; checks again first when the outcome of a create is unknown."""
        request = f"creating {what} {body['name']}"
        deadline = self._polling.deadline(request)
        while True:
            found = find()
            if found is not None:
                return found
            try:
                answer = self._call(request, operation, body=body)
                return _parsed(request, answer, lambda content: parse(content[what]))
            except StrangeAnswerError:
                # It may have been created. Another create could make a second one.
                found = self._find_late(find, deadline)
                if found is None:
                    raise
                return found
            except (ApiError, NoAnswerError) as e:
                if not is_temporary(e):
                    raise
                self._pause_after(e, deadline)
                if isinstance(e, NoAnswerError) or e.status != 429:
                    found = self._find_late(find, deadline)
                    if found is not None:
                        return found

    def _find_late(self, find: Callable[[], T | None], deadline: Deadline) -> T | None:
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
            if after is None:
                deadline.pause(self._polling.pause_seconds)
            else:
                deadline.pause_as_asked(after)
        except Failure as e:
            raise Failure(f"{e}; the last answer: {error}") from error

    def _call(self, request: str, operation: Callable[..., Any], **arguments: Any) -> object:  # noqa: ANN401
        """One request and the content of its answer, None where that is empty or no JSON."""
        options: Json = {"connection_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}
        try:
            status, headers, answer = operation(**arguments, **options, cls=_whole_answer)
        except HttpResponseError as e:
            status, headers, answer = _whole_error(request, e)
        except AzureError as e:
            # Without the request's headers, in which the token is.
            raise NoAnswerError(f"{request}: no answer ({type(e).__name__})") from None
        except ValueError as e:
            # pydo parses an answer that says that it is no JSON, such as the page of a proxy, nevertheless.
            raise StrangeAnswerError(request, e) from None
        if not 200 <= status < 300:
            message = answer.get("message") if isinstance(answer, dict) else None
            raise ApiError(request, status, str(message or "no reason given"), _retry_after(headers))
        return answer


def _parsed(request: str, answer: object, parse: Callable[[Json], T]) -> T:
    """What the answer means; raises StrangeAnswerError where it lacks what the API promises."""
    try:
        return parse(answer)  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError, AttributeError) as e:
        raise StrangeAnswerError(request, e) from None


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
