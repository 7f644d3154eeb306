"""The desired resources: machines, their network and their firewall."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmark.errors import Failure, WrongInput

from cloud.resources import Json, Price, Size

DATABASE_PORT = 5432
APP_PORT = 8080
DATABASES_MAX = 16
MARKER = "Made by prepare_infra.py, tag "
ANYWHERE = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True)
class Machine:
    """A machine by the name it has in the cloud; `variable` is its name in infra.env."""

    name: str
    variable: str
    size: str


@dataclass(frozen=True)
class Plan:
    """Everything the scripts create. Two plans with different tags do not affect each other.

    `allowed_ranges` is empty where a firewall stays as it is, and a new one allows every address.
    """

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
        return f"{MARKER}{self.tag}"

    def vpc(self) -> Json:
        return {"name": self.vpc_name, "region": self.region, "description": self.marker}

    def is_machine_name(self, name: str) -> bool:
        """Whether the scripts give this name to a machine, whatever the number of databases."""
        return re.fullmatch(rf"{re.escape(self.tag)}-(app|events-db-\d{{1,2}})", name) is not None

    def firewall(self, allowed_ranges: Sequence[str]) -> Json:
        """Ssh and ping from the allowed ranges; databases and apps only from machines with the tag."""
        outside = {"addresses": list(allowed_ranges)}
        inside = {"tags": [self.tag]}
        anywhere = {"addresses": list(ANYWHERE)}
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


def prices(plan: Plan, sizes: Sequence[Size], missing: Collection[Machine]) -> dict[str, Price]:
    """The price of each size in the plan; raises Failure where the region has none for a missing machine."""
    known = {size.slug: size for size in sizes}
    result = {}
    for machine in plan.machines:
        size = known.get(machine.size)
        if size is None:
            raise Failure(f"the size {machine.size} is not known; see https://slugs.do-api.dev")
        if machine in missing and not (size.available and plan.region in size.regions):
            raise Failure(f"the size {machine.size} is not available in the region {plan.region}")
        result[machine.size] = size.price
    return result


def total(plan: Plan, known: Mapping[str, Price]) -> Price:
    """What all machines of the plan cost together; VPC, firewall and tags are free."""
    return Price.sum(known[machine.size] for machine in plan.machines)
