"""What exists at DigitalOcean already."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.errors import Failure

from cloud.api import Api, Json
from cloud.plan import Machine, Plan


def find_droplet(api: Api, plan: Plan, machine: Machine) -> Json | None:
    """The droplet with the plan's tag and the machine's name; raises Failure if it is another kind."""
    named = [found for found in api.droplets(plan.tag) if found["name"] == machine.name]
    if len(named) > 1:
        ids = ", ".join(str(found["id"]) for found in named)
        raise Failure(f"there are {len(named)} droplets called {machine.name} ({ids}); remove all but one")
    for found in named:
        region, size = found["region"]["slug"], found["size_slug"]
        if (region, size) != (plan.region, machine.size):
            raise Failure(
                f"{machine.name} already exists as {size} in {region}, not as {machine.size} in "
                f"{plan.region}; give the same options as before, or run destroy_infra.py first"
            )
    return named[0] if named else None


def find_vpc(api: Api, plan: Plan) -> Json | None:
    """The VPC created by these scripts; raises Failure where another one has its name."""
    for found in api.vpcs():
        if found["name"] == plan.vpc_name:
            if found.get("description") != plan.marker:
                raise Failure(
                    f"the VPC {plan.vpc_name} was not created by prepare_infra.py; choose another --tag"
                )
            if found["region"] != plan.region:
                raise Failure(
                    f"the VPC {plan.vpc_name} is in {found['region']}, not in {plan.region}; "
                    "choose that --region, or another --tag"
                )
            return found
    return None


def find_firewall(api: Api, tag: str, name: str) -> Json | None:
    """The firewall of this name that is for this tag only."""
    for found in api.firewalls():
        if found["name"] == name:
            if found.get("tags") != [tag]:
                raise Failure(
                    f"the firewall {name} was not created by prepare_infra.py; choose another --tag"
                )
            return found
    return None


def find_tag(api: Api, name: str) -> Json | None:
    return next((found for found in api.tags() if found["name"] == name), None)


@dataclass(frozen=True)
class Inventory:
    """All resources that have a tag, or are known to belong to it.

    The first VPC of a region becomes its default, which the API never removes: it is shown, but not counted.
    """

    droplets: Sequence[Json]
    firewalls: Sequence[Json]
    vpcs: Sequence[Json]
    tags: Sequence[Json]
    default_vpcs: Sequence[Json]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that can be removed."""
        return not (self.droplets or self.firewalls or self.vpcs or self.tags)

    def lines(self) -> list[str]:
        return [
            *(f"droplet   {d['name']} ({d['id']}), {d['size_slug']}, {d['status']}" for d in self.droplets),
            *(f"firewall  {f['name']}" for f in self.firewalls),
            *(f"VPC       {v['name']}, {v['ip_range']}, {v['region']}" for v in self.vpcs),
            *(f"tag       {t['name']}" for t in self.tags),
            *(
                f"VPC       {v['name']}, {v['ip_range']}, {v['region']}: stays, since DigitalOcean never "
                "removes a region's default VPC; it costs nothing"
                for v in self.default_vpcs
            ),
        ]

    def lines_or_nothing(self, tag: str) -> list[str]:
        return [*([f"Nothing has the tag {tag}."] if self.is_empty else []), *self.lines()]


def read_inventory(api: Api, plan: Plan) -> Inventory:
    """What belongs to the plan's tag, whatever its region, sizes and names are."""
    vpcs = [found for found in api.vpcs() if found.get("description") == plan.marker]
    return Inventory(
        api.droplets(plan.tag),
        [found for found in api.firewalls() if found.get("tags") == [plan.tag]],
        [found for found in vpcs if not found.get("default")],
        [found for found in api.tags() if found["name"] == plan.tag],
        [found for found in vpcs if found.get("default")],
    )
