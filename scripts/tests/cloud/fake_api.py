"""A small DigitalOcean in memory, which keeps what is created and can inject errors."""

import http.server
import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

Json: TypeAlias = dict[str, Any]

TOKEN = "dop_v1_secret-of-the-tests"
FINGERPRINT = "3b:16:e4:bf:8b:00:8b:b8:59:8c:a9:d3:f0:19:fa:45"
PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ jane\'s "key"'
SIZES = {"s-2vcpu-2gb-amd": (0.03125, 21.0), "s-4vcpu-8gb-amd": (0.08333, 56.0)}
PAGE_MAX = 200


@dataclass
class Trouble:
    """One answer that replaces the real one; with `done` the request is carried out nevertheless.

    `text` is its body, if not a message as the API has it, and `kind` the body's type.
    """

    method: str
    path: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = False
    text: str | None = None
    kind: str = "application/json"


@dataclass
class FakeApi:
    """The state. Every request is noted in `requests` as "METHOD path", and in `moments` when it came."""

    url: str = ""
    droplets: dict[int, Json] = field(default_factory=dict)
    firewalls: dict[str, Json] = field(default_factory=dict)
    vpcs: dict[str, Json] = field(default_factory=dict)
    tags: dict[str, Json] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    troubles: deque[Trouble] = field(default_factory=deque)
    becomes_active: bool = True
    # Number of requests until a new droplet is listed.
    listed_after: int = 0
    # Number of requests for which a removed droplet is still listed.
    listed_on: int = 0
    # Names of the other resources in a VPC, by its id.
    vpc_members: dict[str, list[str]] = field(default_factory=dict)
    sold_out: set[str] = field(default_factory=set)
    last_id: int = 1000

    def created(self, kind: str) -> int:
        return self.requests.count(f"POST /v2/{kind}")

    def add_droplet(
        self,
        name: str,
        tag: str,
        size: str = "s-4vcpu-8gb-amd",
        region: str = "fra1",
        vpc: str | None = None,
        image: str = "debian-12-x64",
    ) -> Json:
        self.last_id += 1
        hourly, monthly = SIZES[size]
        number = self.last_id
        droplet: Json = {
            "id": number,
            "name": name,
            "status": "new",
            "size_slug": size,
            "size": {"slug": size, "price_hourly": hourly, "price_monthly": monthly},
            "region": {"slug": region},
            "image": {"slug": image},
            "vpc_uuid": vpc,
            "networks": {"v4": []},
            "tags": [tag],
            "polls": 0,
            "polls_left": None,
        }
        self.droplets[number] = droplet
        return droplet

    def answer(self, method: str, path: str, query: Json, body: Json) -> tuple[int, Json]:
        parts = path.removeprefix("/v2/").split("/")
        match method, parts:
            case "GET", ["account", "keys", fingerprint]:
                if fingerprint.replace("%3A", ":") != FINGERPRINT:
                    return not_found()
                return 200, {"ssh_key": {"id": 7, "fingerprint": FINGERPRINT, "public_key": PUBLIC_KEY}}
            case "GET", ["sizes"]:
                return page("sizes", sizes(self.sold_out), query, self.url)
            case "GET", ["droplets"]:
                return page("droplets", self.listed_droplets(query.get("tag_name")), query, self.url)
            case "GET", ["vpcs", vpc_id, "members"]:
                return page("members", self.members(vpc_id), query, self.url)
            case "GET", [("firewalls" | "vpcs" | "tags") as kind]:
                return page(kind, list(getattr(self, kind).values()), query, self.url)
            case "POST", ["tags", tag, "resources"]:
                if tag not in self.tags:
                    return not_found()
                for resource in body["resources"]:
                    self.droplets[int(resource["resource_id"])]["tags"].append(tag)
                return 204, {}
            case "POST", ["tags"]:
                self.tags[body["name"]] = {"name": body["name"]}
                return 201, {"tag": self.tags[body["name"]]}
            case "POST", ["vpcs"]:
                is_first = body["region"] not in [vpc["region"] for vpc in self.vpcs.values()]
                vpc = {
                    **body,
                    "id": f"vpc-{len(self.vpcs)}",
                    "ip_range": "10.110.0.0/20",
                    "default": is_first,
                }
                self.vpcs[vpc["id"]] = vpc
                return 201, {"vpc": vpc}
            case "POST", ["firewalls"]:
                if not set(body["tags"]) <= set(self.tags):
                    return 422, {"id": "unprocessable_entity", "message": "the tag does not exist"}
                firewall = {**body, "id": f"firewall-{len(self.firewalls)}"}
                self.firewalls[firewall["id"]] = firewall
                return 202, {"firewall": firewall}
            case "PUT", ["firewalls", name] if name in self.firewalls:
                changed: Json = {**body, "id": name}
                self.firewalls[name] = changed
                return 200, {"firewall": changed}
            case "POST", ["droplets"]:
                droplet = self.add_droplet(
                    body["name"],
                    body["tags"][0],
                    body["size"],
                    body["region"],
                    body["vpc_uuid"],
                    body["image"],
                )
                return 202, {"droplet": droplet, "links": {"actions": []}}
            case "DELETE", ["droplets", number]:
                return self.remove_droplet(int(number))
            case "DELETE", ["vpcs", name] if self.vpcs.get(name, {}).get("default"):
                return 403, {"id": "forbidden", "message": "Can not delete default VPCs"}
            case "DELETE", [("firewalls" | "vpcs" | "tags") as kind, name]:
                return (204, {}) if getattr(self, kind).pop(name, None) else not_found()
        return not_found()

    def remove_droplet(self, number: int) -> tuple[int, Json]:
        droplet = self.droplets.get(number)
        if droplet is None or droplet["polls_left"] is not None:
            return not_found()
        if droplet["status"] == "new":
            self.poll(droplet)
            return 422, {"id": "unprocessable_entity", "message": "Droplet already has a pending event."}
        droplet["polls_left"] = self.listed_on
        return 204, {}

    def members(self, vpc: str) -> list[Json]:
        inside = [each for each in self.droplets.values() if each["vpc_uuid"] == vpc]
        machines = [{"urn": f"do:droplet:{each['id']}", "name": each["name"]} for each in inside]
        return [*machines, *({"urn": urn, "name": urn} for urn in self.vpc_members.get(vpc, []))]

    def listed_droplets(self, tags: list[str] | None) -> list[Json]:
        listed = []
        for droplet in list(self.droplets.values()):
            if tags is not None and tags[0] not in droplet["tags"]:
                continue
            if droplet["polls_left"] == 0:
                del self.droplets[droplet["id"]]
                continue
            self.poll(droplet)
            if droplet["polls"] > self.listed_after:
                listed.append(droplet)
        return listed

    def poll(self, droplet: Json) -> None:
        """Time passes with each poll."""
        droplet["polls"] += 1
        if droplet["polls_left"] is not None:
            droplet["polls_left"] -= 1
        if self.becomes_active and droplet["polls"] > self.listed_after + 1:
            number = droplet["id"] - 1000
            droplet["status"] = "active"
            droplet["networks"]["v4"] = [
                {"type": "public", "ip_address": f"203.0.113.{number % 250}"},
                {"type": "private", "ip_address": f"10.110.0.{number % 250}"},
            ]

    def handle(
        self, method: str, target: str, body: Json, token: str
    ) -> tuple[int, dict[str, str], Json | str]:
        parts = urlsplit(target)
        self.requests.append(f"{method} {parts.path}")
        self.moments.append(time.monotonic())
        if token != f"Bearer {TOKEN}":
            return 401, {}, {"id": "unauthorized", "message": "Unable to authenticate you"}
        query = parse_qs(parts.query)
        trouble = self.take_trouble(method, parts.path)
        if trouble is None:
            status, answer = self.answer(method, parts.path, query, body)
            return status, {}, answer
        if trouble.done:
            self.answer(method, parts.path, query, body)
        message: Json | str = {"id": "trouble", "message": "as the test wants it"}
        headers = {**trouble.headers, "Content-Type": trouble.kind}
        return trouble.status, headers, message if trouble.text is None else trouble.text

    def take_trouble(self, method: str, path: str) -> Trouble | None:
        first = self.troubles[0] if self.troubles else None
        if first is not None and (first.method, first.path) == (method, path):
            return self.troubles.popleft()
        return None


def not_found() -> tuple[int, Json]:
    return 404, {"id": "not_found", "message": "The resource you were accessing could not be found."}


def sizes(sold_out: set[str]) -> list[Json]:
    """Many, so that those asked for are on the second page."""
    others: dict[str, tuple[float, float]] = {f"other-{n}": (1.0, 672.0) for n in range(230)}
    return [
        {
            "slug": slug,
            "price_hourly": hourly,
            "price_monthly": monthly,
            "available": slug not in sold_out,
            "regions": ["fra1", "ams3"],
        }
        for slug, (hourly, monthly) in {**others, **SIZES}.items()
    ]


def page(kind: str, elements: list[Json], query: Json, url: str) -> tuple[int, Json]:
    size = min(int(query.get("per_page", ["20"])[0]), PAGE_MAX)
    number = int(query.get("page", ["1"])[0])
    shown = elements[(number - 1) * size : number * size]
    pages = {}
    if number * size < len(elements):
        pages["next"] = f"{url}/v2/{kind}?page={number + 1}&per_page={size}"
    return 200, {kind: shown, "links": {"pages": pages}, "meta": {"total": len(elements)}}


@contextmanager
def serving() -> Iterator[FakeApi]:
    api = FakeApi()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer in one packet: a second one would wait for the acknowledgement of the first, 40 ms.
        wbufsize = -1

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            body = json.loads(text) if text else {}
            status, headers, answer = api.handle(
                self.command, self.path, body, self.headers.get("Authorization") or ""
            )
            text_of = answer if isinstance(answer, str) else json.dumps(answer)
            content = b"" if status == 204 else text_of.encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = respond  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
