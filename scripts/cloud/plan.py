"""The desired resources: machines, their network and their firewall."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmark.errors import Failure, WrongInput

from cloud.api import Json

DATABASE_PORT = 5432
APP_PORT = 8080
DATABASES_MAX = 16


@dataclass(frozen=True)
class Machine:
    """A machine by the name it has in the cloud; `variable` is its name in infra.env."""

    name: str
    variable: str
    size: str


@dataclass(frozen=True)
class Plan:
    """Everything the scripts create. Two plans with different tags do not affect each other."""

    tag: str
    region: str
    image: str
    machines: tuple[Machine, ...]
    allowed_ranges: tuple[str, ...]

    @staticmethod
    def of(
        tag: str,
        region: str,
        image: str,
        sizes: Mapping[str, str],
        databases: int,
        allowed_ranges: Sequence[str],
    ) -> "Plan":
        """`sizes` has the keys app and events-db. Raises WrongInput where a value can never work."""
        _check_tag(tag)
        if not 1 <= databases <= DATABASES_MAX:
            raise WrongInput(
                f"--databases must be a number between 1 and {DATABASES_MAX}, but is {databases}"
            )
        machines = [Machine(f"{tag}-app", "APP", sizes["app"])]
        machines += [
            Machine(f"{tag}-events-db-{number}", f"EVENTS_DB{number}", sizes["events-db"])
            for number in range(databases)
        ]
        return Plan(tag, region, image, tuple(machines), tuple(allowed_ranges))

    @staticmethod
    def only_tag(tag: str) -> "Plan":
        """A plan without machines, to find what belongs to the tag."""
        _check_tag(tag)
        return Plan(tag, "", "", (), ())

    @property
    def vpc_name(self) -> str:
        return f"{self.tag}-vpc"

    @property
    def firewall_name(self) -> str:
        return f"{self.tag}-firewall"

    @property
    def marker(self) -> str:
        """The VPC's description. A VPC has no tags, and only one with this description is ever removed."""
        return f"Made by prepare_infra.py, tag {self.tag}"

    def vpc(self) -> Json:
        return {"name": self.vpc_name, "region": self.region, "description": self.marker}

    def firewall(self, vpc_range: str) -> Json:
        """Ssh and ping from the allowed ranges; databases and apps only from inside the VPC."""
        outside = {"addresses": list(self.allowed_ranges)}
        inside = {"addresses": [vpc_range]}
        anywhere = {"addresses": ["0.0.0.0/0", "::/0"]}
        return {
            "name": self.firewall_name,
            "tags": [self.tag],
            "inbound_rules": [
                {"protocol": "tcp", "ports": "22", "sources": outside},
                {"protocol": "icmp", "ports": "0", "sources": outside},
                {"protocol": "tcp", "ports": str(DATABASE_PORT), "sources": inside},
                {"protocol": "tcp", "ports": str(APP_PORT), "sources": inside},
            ],
            "outbound_rules": [
                {"protocol": "tcp", "ports": "0", "destinations": anywhere},
                {"protocol": "udp", "ports": "0", "destinations": anywhere},
                {"protocol": "icmp", "ports": "0", "destinations": anywhere},
            ],
        }

    def droplet(self, machine: Machine, vpc_id: str, ssh_key_id: int, user_data: str) -> Json:
        return {
            "name": machine.name,
            "region": self.region,
            "size": machine.size,
            "image": self.image,
            "ssh_keys": [ssh_key_id],
            "vpc_uuid": vpc_id,
            "tags": [self.tag],
            "user_data": user_data,
            "monitoring": False,
            "with_droplet_agent": False,
        }


def _check_tag(tag: str) -> None:
    if re.fullmatch(r"[a-z][a-z0-9-]{0,40}", tag) is None:
        raise WrongInput(f"--tag must be lower-case letters, digits and dashes, but is '{tag}'")


@dataclass(frozen=True)
class Price:
    """In US dollars, without taxes, as listed by the API today."""

    hourly: float
    monthly: float

    def __str__(self) -> str:
        return f"{self.hourly:.4f} USD an hour, at most {self.monthly:.2f} USD a month"


def prices(plan: Plan, sizes: Sequence[Json], missing: Collection[Machine]) -> dict[str, Price]:
    """The price of each size in the plan; raises Failure where the region has none for a missing machine."""
    known = {str(size["slug"]): size for size in sizes}
    result = {}
    for machine in plan.machines:
        size = known.get(machine.size)
        if size is None:
            raise Failure(f"the size {machine.size} is not known; see https://slugs.do-api.dev")
        if machine in missing and not (size["available"] and plan.region in size["regions"]):
            raise Failure(f"the size {machine.size} is not available in the region {plan.region}")
        result[machine.size] = Price(float(size["price_hourly"]), float(size["price_monthly"]))
    return result


def total(plan: Plan, known: Mapping[str, Price]) -> Price:
    """What all machines cost together; VPC, firewall and tags are free."""
    each = [known[machine.size] for machine in plan.machines]
    return Price(sum(price.hourly for price in each), sum(price.monthly for price in each))
