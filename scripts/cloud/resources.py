"""DigitalOcean's resources, as far as these scripts use them.

Each is read from an answer of the API by `of`, which raises LookupError, TypeError, ValueError or
AttributeError where the answer lacks what it must have. So a strange answer stays in cloud/api.py.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Price:
    """In US dollars, without taxes, as listed by the API today."""

    hourly: float
    monthly: float

    def __str__(self) -> str:
        return f"{self.hourly:.4f} USD an hour, at most {self.monthly:.2f} USD a month"

    @staticmethod
    def sum(prices: Iterable["Price"]) -> "Price":
        each = list(prices)
        return Price(sum(price.hourly for price in each), sum(price.monthly for price in each))

    @staticmethod
    def of(size: Json) -> "Price":
        return Price(float(size["price_hourly"]), float(size["price_monthly"]))


@dataclass(frozen=True)
class SshKey:
    id: int
    public_key: str

    @staticmethod
    def of(answer: Json) -> "SshKey":
        return SshKey(int(answer["id"]), _text(answer["public_key"]))


@dataclass(frozen=True)
class Size:
    slug: str
    price: Price
    available: bool
    regions: tuple[str, ...]

    @staticmethod
    def of(answer: Json) -> "Size":
        regions = tuple(_text(region) for region in answer["regions"])
        return Size(_text(answer["slug"]), Price.of(answer), bool(answer["available"]), regions)


@dataclass(frozen=True)
class Droplet:
    """A machine. `image` and `vpc_id` are empty where the API does not know them any more."""

    id: int
    name: str
    status: str
    size: str
    price: Price
    image: str
    region: str
    vpc_id: str
    tags: tuple[str, ...]
    public: str | None
    private: str | None

    @staticmethod
    def of(answer: Json) -> "Droplet":
        networks = (answer.get("networks") or {}).get("v4") or []
        addresses = {_text(each["type"]): _text(each["ip_address"]) for each in networks}
        return Droplet(
            int(answer["id"]),
            _text(answer["name"]),
            _text(answer["status"]),
            _text(answer["size_slug"]),
            Price.of(answer["size"]),
            str((answer.get("image") or {}).get("slug") or ""),
            _text(answer["region"]["slug"]),
            str(answer.get("vpc_uuid") or ""),
            tuple(_text(tag) for tag in answer.get("tags") or []),
            addresses.get("public"),
            addresses.get("private"),
        )


@dataclass(frozen=True)
class Vpc:
    id: str
    name: str
    description: str
    region: str
    ip_range: str
    is_default: bool

    @staticmethod
    def of(answer: Json) -> "Vpc":
        return Vpc(
            _text(answer["id"]),
            _text(answer["name"]),
            str(answer.get("description") or ""),
            _text(answer["region"]),
            str(answer.get("ip_range") or ""),
            bool(answer.get("default")),
        )


@dataclass(frozen=True)
class VpcMember:
    """A resource in a VPC."""

    urn: str
    name: str

    @property
    def droplet_id(self) -> int | None:
        """The id of a machine; None of another resource."""
        kind, _, number = self.urn.rpartition(":")
        return int(number) if kind == "do:droplet" else None

    @staticmethod
    def of(answer: Json) -> "VpcMember":
        return VpcMember(_text(answer["urn"]), str(answer.get("name") or ""))


@dataclass(frozen=True)
class Rule:
    """An inbound rule; `sources` are normalized ranges of addresses, and tags as tag:<name>."""

    protocol: str
    ports: str
    sources: tuple[str, ...]

    @staticmethod
    def of(answer: Json) -> "Rule":
        sources = answer.get("sources") or {}
        ranges = [_range(address) for address in sources.get("addresses") or []]
        tags = [f"tag:{_text(tag)}" for tag in sources.get("tags") or []]
        others = [
            f"{kind}:{each}"
            for kind in ("droplet_ids", "load_balancer_uids", "kubernetes_ids")
            for each in sources.get(kind) or []
        ]
        return Rule(_text(answer["protocol"]), str(answer.get("ports") or "0"), tuple(ranges + tags + others))


@dataclass(frozen=True)
class Firewall:
    id: str
    name: str
    tags: tuple[str, ...]
    droplet_ids: tuple[int, ...]
    inbound: frozenset[tuple[str, str, frozenset[str]]]
    # Ranges of addresses that may use ssh, in their order.
    ssh_sources: tuple[str, ...]

    @staticmethod
    def of(answer: Json) -> "Firewall":
        ssh = [rule for rule in answer.get("inbound_rules") or [] if str(rule["ports"]) == "22"]
        return Firewall(
            _text(answer["id"]),
            _text(answer["name"]),
            tuple(_text(tag) for tag in answer.get("tags") or []),
            tuple(int(number) for number in answer.get("droplet_ids") or []),
            inbound_of(answer),
            tuple(_range(address) for rule in ssh for address in rule["sources"].get("addresses") or []),
        )


def inbound_of(firewall: Json) -> frozenset[tuple[str, str, frozenset[str]]]:
    """The inbound rules without any order, because the API may return them in another one."""
    rules = [Rule.of(rule) for rule in firewall.get("inbound_rules") or []]
    return frozenset((rule.protocol, rule.ports, frozenset(rule.sources)) for rule in rules)


@dataclass(frozen=True)
class Tag:
    """A tag; `others` is the number of resources with it that are no machines."""

    name: str
    others: int

    @staticmethod
    def of(answer: Json) -> "Tag":
        resources = answer.get("resources") or {}
        droplets = int((resources.get("droplets") or {}).get("count") or 0)
        return Tag(_text(answer["name"]), int(resources.get("count") or 0) - droplets)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


def _range(text: str) -> str:
    """A single address is a range of its own: the API may return one for the other."""
    return str(ipaddress.ip_network(_text(text), strict=False))
