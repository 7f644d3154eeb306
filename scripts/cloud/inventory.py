"""What exists at DigitalOcean already, and what of it was created by these scripts."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchmark.errors import Failure

from cloud.api import Api
from cloud.plan import MARKER, Machine, Plan
from cloud.resources import Droplet, Firewall, Tag, Vpc, VpcMember


@dataclass(frozen=True)
class Machines:
    """The machines of a tag: `ours` were created by these scripts, `foreign` only have the tag.

    Ours are those whose id is in infra.json, and those of our names in a VPC with our description or, with
    the tag, in no VPC at all. So a machine that loses its tag stays known, and a tag alone makes nothing
    ours. Nor does the VPC: where it has become the region's default, other machines, the `guests`, are in it.
    """

    ours: Sequence[Droplet]
    foreign: Sequence[Droplet]
    guests: Sequence[Droplet]

    def find(self, plan: Plan, machine: Machine) -> Droplet | None:
        """The droplet of the machine's name; raises Failure if it is of another kind or not the only one."""
        named = [found for found in self.ours if found.name == machine.name]
        if len(named) > 1:
            raise Failure(_duplicates(machine.name, named))
        for found in named:
            if (found.region, found.size) != (plan.region, machine.size):
                raise Failure(
                    f"{machine.name} already exists as {found.size} in {found.region}, not as {machine.size} "
                    f"in {plan.region}; give the same options as before, or run destroy_infra.py first"
                )
        return named[0] if named else None

    def check_names(self) -> None:
        """Raises Failure where several machines have a name: a late listing has let one be created twice."""
        counts = Counter(found.name for found in self.ours)
        problems = [
            _duplicates(name, [found for found in self.ours if found.name == name])
            for name, count in sorted(counts.items())
            if count > 1
        ]
        if problems:
            raise Failure("\n".join(problems))


def _duplicates(name: str, named: Sequence[Droplet]) -> str:
    ids = ", ".join(str(found.id) for found in named)
    return (
        f"there are {len(named)} droplets called {name} ({ids}), and each costs; "
        "remove all but one at https://cloud.digitalocean.com/droplets, or run destroy_infra.py"
    )


def find_machines(api: Api, plan: Plan, vpcs: Collection[Vpc], known_ids: Collection[int]) -> Machines:
    """Asks for all machines of the account; `vpcs` are those with our description."""
    our_vpcs = {vpc.id for vpc in vpcs}
    ours, foreign, guests = [], [], []
    for found in api.droplets():
        is_placed = found.vpc_id in our_vpcs or (plan.tag in found.tags and not found.vpc_id)
        if found.id in known_ids or (plan.is_machine_name(found.name) and is_placed):
            ours.append(found)
        elif plan.tag in found.tags:
            foreign.append(found)
        elif found.vpc_id in our_vpcs:
            guests.append(found)
    return Machines(ours, foreign, guests)


def our_vpcs(api: Api, plan: Plan) -> list[Vpc]:
    return [found for found in api.vpcs() if found.description == plan.marker]


def find_vpc(api: Api, plan: Plan) -> Vpc | None:
    """The VPC created by these scripts; raises Failure where another one has its name."""
    for found in api.vpcs():
        if found.name == plan.vpc_name:
            if found.description != plan.marker:
                raise Failure(
                    f"the VPC {plan.vpc_name} was not created by prepare_infra.py; choose another --tag"
                )
            if found.region != plan.region:
                raise Failure(
                    f"the VPC {plan.vpc_name} is in {found.region}, not in {plan.region}; "
                    "choose that --region, or another --tag"
                )
            return found
    return None


def find_firewall(api: Api, plan: Plan) -> Firewall | None:
    """The firewall of this name that is for this tag only."""
    for found in api.firewalls():
        if found.name == plan.firewall_name:
            if found.tags != (plan.tag,):
                raise Failure(
                    f"the firewall {plan.firewall_name} was not created by prepare_infra.py; "
                    "choose another --tag"
                )
            return found
    return None


def find_tag(api: Api, name: str) -> Tag | None:
    return next((found for found in api.tags() if found.name == name), None)


@dataclass(frozen=True)
class Inventory:
    """What these scripts have created for a tag, and in `stays` what only looks like it.

    `unlisted` are machines that are in our VPC, but not in the account's list: a new one is listed late.
    The first VPC of a region becomes its default, which the API never removes: it stays, too.
    """

    tag: str
    droplets: Sequence[Droplet]
    unlisted: Sequence[VpcMember]
    firewalls: Sequence[Firewall]
    vpcs: Sequence[Vpc]
    tags: Sequence[Tag]
    stays: Sequence[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that can be removed."""
        return not (self.droplets or self.unlisted or self.firewalls or self.vpcs or self.tags)

    def lines(self) -> list[str]:
        return [
            *(f"droplet   {d.name} ({d.id}), {d.size}, {d.status}{self._untagged(d)}" for d in self.droplets),
            *(
                f"droplet   {m.name} ({m.droplet_id}), in the VPC but not listed: just created or removed"
                for m in self.unlisted
            ),
            *(f"firewall  {f.name}" for f in self.firewalls),
            *(f"VPC       {v.name}, {v.ip_range}, {v.region}" for v in self.vpcs),
            *(f"tag       {t.name}" for t in self.tags),
            *self.stays,
        ]

    def _untagged(self, droplet: Droplet) -> str:
        return "" if self.tag in droplet.tags else f", WITHOUT THE TAG {self.tag}: no firewall protects it"

    def lines_or_nothing(self) -> list[str]:
        if not self.is_empty:
            return self.lines()
        if any(not line.startswith("VPC") for line in self.stays):
            return [f"prepare_infra.py has left nothing to remove for the tag {self.tag}.", *self.stays]
        return [f"Nothing has the tag {self.tag}.", *self.stays]


def other_tags(api: Api, plan: Plan) -> list[str]:
    """Lines about machines of other tags, which cost, too."""
    lines = []
    for vpc in api.vpcs():
        tag = vpc.description.removeprefix(MARKER)
        if vpc.description.startswith(MARKER) and tag != plan.tag:
            machines = sum(member.droplet_id is not None for member in api.vpc_members(vpc.id))
            if machines:
                lines.append(f"The tag {tag} has {machines} machine(s), which cost: --tag {tag}")
    return sorted(lines)


def read_inventory(
    api: Api, plan: Plan, known_ids: Collection[int], removed_ids: Collection[int] = ()
) -> Inventory:
    """What belongs to the plan's tag, whatever its region and sizes are.

    `known_ids` are the machines of infra.json, if it is of this tag. Those of `removed_ids` are members of
    the VPC for a while longer.
    """
    vpcs = our_vpcs(api, plan)
    machines = find_machines(api, plan, vpcs, known_ids)
    # prepare_infra.py creates the VPC first, and destroy_infra.py removes it last.
    is_ours = bool(vpcs or machines.ours or known_ids)
    others = [*machines.foreign, *machines.guests]
    stays = [
        f"droplet   {found.name} ({found.id}): stays, since prepare_infra.py has not created it"
        for found in others
    ]
    firewalls, has_other_firewall = [], False
    for firewall in api.firewalls():
        if plan.tag not in firewall.tags:
            continue
        if firewall.name != plan.firewall_name or firewall.tags != (plan.tag,) or not is_ours:
            stays.append(f"firewall  {firewall.name}: stays, since prepare_infra.py has not created it")
            has_other_firewall = True
        elif machines.foreign:
            stays.append(f"firewall  {firewall.name}: stays, since it protects the droplets that stay")
        else:
            firewalls.append(firewall)
    tags = []
    for tag in api.tags():
        if tag.name != plan.tag:
            continue
        if tag.others > 0 or machines.foreign or has_other_firewall:
            stays.append(f"tag       {tag.name}: stays, since other resources have it")
        elif not is_ours:
            stays.append(f"tag       {tag.name}: stays, since prepare_infra.py has not created it")
        else:
            tags.append(tag)
    listed_ids = {found.id for found in [*machines.ours, *others]}
    removable: list[Vpc] = []
    unlisted: list[VpcMember] = []
    for vpc in vpcs:
        members = api.vpc_members(vpc.id)
        unlisted += [
            member
            for member in members
            if member.droplet_id is not None
            and member.droplet_id not in {*listed_ids, *removed_ids}
            and plan.is_machine_name(member.name)
        ]
        staying = [member.urn for member in members if member.droplet_id is None]
        staying += [f"{found.name} ({found.id})" for found in others if found.vpc_id == vpc.id]
        shown = f"VPC       {vpc.name}, {vpc.ip_range}, {vpc.region}: stays, since"
        if vpc.is_default:
            stays.append(f"{shown} DigitalOcean never removes a region's default VPC; it costs nothing")
        elif staying:
            stays.append(f"{shown} it has {', '.join(staying)}")
        else:
            removable.append(vpc)
    return Inventory(plan.tag, machines.ours, unlisted, firewalls, removable, tags, stays)
