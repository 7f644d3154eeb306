"""Creates what is missing, and waits until the machines can be used.

Each step first checks whether its result exists. So a second run changes nothing, and a run after an
interruption resumes where the first one stopped.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmark.errors import Failure, WrongInput

from cloud import inventory, ssh
from cloud.api import Api
from cloud.cloud_init import user_data
from cloud.errors import ApiError
from cloud.files import Address, InfraFiles
from cloud.inventory import Machines
from cloud.plan import ANYWHERE, Machine, Plan, prices, total
from cloud.polling import Polling
from cloud.resources import Droplet, Price, SshKey, inbound_of

# Packages are installed only at the first boot. Right after its end Docker may not run yet.
WITHOUT_DOCKER_MAX = 10


def show_plan(api: Api, plan: Plan, machines: Machines) -> None:
    """Prints what will exist and what it costs. Raises WrongInput where the tag is used by others."""
    if machines.foreign:
        shown = ", ".join(f"{found.name} ({found.id})" for found in machines.foreign[:5])
        raise WrongInput(
            f"the tag {plan.tag} is used by {len(machines.foreign)} droplet(s) that prepare_infra.py has not "
            f"created, and its firewall would apply to them: {shown}; choose another --tag"
        )
    machines.check_names()
    existing = {machine: machines.find(plan, machine) for machine in plan.machines}
    missing = [machine for machine, found in existing.items() if found is None]
    known = prices(plan, api.sizes(), missing)
    firewall = inventory.find_firewall(api, plan)
    sources = plan.allowed_ranges or (firewall.ssh_sources if firewall else ANYWHERE)
    print(f"In {plan.region}, all with the tag {plan.tag}:")
    print(f"  VPC       {plan.vpc_name}")
    print(f"  firewall  {plan.firewall_name}: ssh and ping from {', '.join(sources)}")
    for machine in plan.machines:
        found = existing[machine]
        image = (found and found.image) or plan.image
        print(f"  droplet   {machine.name}: {machine.size}, {image}, {known[machine.size]}")
        if image != plan.image:
            print(
                f"            It exists with {image}, not with {plan.image}, and stays so; another image "
                "needs destroy_infra.py first, which removes all data."
            )
    others = others_of(plan, machines.ours)
    for other in others:
        print(f"  droplet   {other.name} ({other.id}): {other.size}, {other.price}")
        print(
            "            It exists, though these options do not ask for it: it stays, is not used, and costs "
            "until destroy_infra.py removes everything."
        )
    print(f"Together: {Price.sum([total(plan, known), *(each.price for each in others)])}", flush=True)


def others_of(plan: Plan, ours: Collection[Droplet]) -> list[Droplet]:
    """The machines that exist beyond the plan, such as those of more databases before."""
    names = {machine.name for machine in plan.machines}
    return [found for found in ours if found.name not in names]


@dataclass(frozen=True)
class Preparation:
    """One run of prepare_infra.py. The folder must be locked."""

    api: Api
    plan: Plan
    files: InfraFiles
    polling: Polling

    def run(self, fingerprint: str) -> list[Address]:
        ssh.require()
        key = self.ssh_key(fingerprint)
        plan = self.plan
        show_plan(self.api, plan, self.machines())
        about = {"tag": plan.tag, "region": plan.region, "databases": len(plan.machines) - 1}
        self.files.claim(about)
        # First, because its description says that the rest belongs to this script.
        vpc = self.api.create_vpc(plan.vpc(), lambda: inventory.find_vpc(self.api, plan))
        print(f"VPC {vpc.name}: {vpc.ip_range}", flush=True)
        # The firewall needs the tag, and a machine must never be without its firewall.
        self.api.create_tag({"name": plan.tag}, lambda: inventory.find_tag(self.api, plan.tag))
        self.ensure_firewall()
        self.ensure_tags()
        # Before the machines: a database's password is generated only once.
        self.files.add_passwords(len(plan.machines) - 1)
        for machine in plan.machines:
            self.ensure_droplet(machine, vpc.id, key)
        addresses = [self.await_address(machine) for machine in plan.machines]
        self.describe(addresses, about)
        for each in addresses:
            self.await_ready(each)
        # Again: another computer may have created or removed some, or one was listed late.
        self.describe(addresses, about)
        self.files.write(addresses)
        return addresses

    def machines(self) -> Machines:
        vpcs = inventory.our_vpcs(self.api, self.plan)
        return inventory.find_machines(self.api, self.plan, vpcs, self.files.droplet_ids(self.plan.tag))

    def ssh_key(self, fingerprint: str) -> SshKey:
        try:
            return self.api.ssh_key(fingerprint)
        except ApiError as e:
            if e.status == 404:
                raise WrongInput(
                    "SSH_KEY_FINGERPRINT names no key of this account; "
                    "add the public key at https://cloud.digitalocean.com/account/security"
                ) from None
            raise

    def ensure_firewall(self) -> None:
        """Creates the firewall, or changes its rules to those of the options; no machine is affected."""
        plan = self.plan
        firewall = self.api.create_firewall(
            plan.firewall(plan.allowed_ranges or ANYWHERE), lambda: inventory.find_firewall(self.api, plan)
        )
        if not (plan.allowed_ranges or firewall.ssh_sources):
            raise Failure(f"the firewall {plan.firewall_name} allows ssh from nowhere; give --allow")
        body = plan.firewall(plan.allowed_ranges or firewall.ssh_sources)
        if firewall.inbound == inbound_of(body):
            print(f"firewall {plan.firewall_name}: ready", flush=True)
            return
        if firewall.droplet_ids:
            body["droplet_ids"] = list(firewall.droplet_ids)
        self.api.replace_firewall(firewall.id, body)
        sources = ", ".join(body["inbound_rules"][0]["sources"]["addresses"])
        print(f"firewall {plan.firewall_name}: changed, ssh and ping from {sources}", flush=True)

    def ensure_tags(self) -> None:
        """Tags machines again that have lost the tag, and with it their firewall."""
        for found in self.machines().ours:
            if self.plan.tag not in found.tags:
                self.api.tag_droplet(self.plan.tag, found.id)
                print(
                    f"droplet {found.name} ({found.id}): had lost the tag {self.plan.tag} and its firewall; "
                    "tagged again",
                    flush=True,
                )

    def ensure_droplet(self, machine: Machine, vpc_id: str, key: SshKey) -> None:
        body = self.plan.droplet(machine, vpc_id, key.id, user_data(key.public_key))
        droplet = self.api.create_droplet(body, lambda: self.machines().find(self.plan, machine))
        print(f"droplet {machine.name}: {droplet.id}, {droplet.status}", flush=True)

    def describe(self, addresses: Sequence[Address], about: Mapping[str, object]) -> None:
        """Writes infra.json if each machine exists exactly once; raises Failure otherwise."""
        machines = self.machines()
        machines.check_names()
        existing = {found.id for found in machines.ours}
        gone = [f"{each.name} ({each.id})" for each in addresses if each.id not in existing]
        if gone:
            raise Failure(
                f"removed while this script was running, by another one or by hand: {', '.join(gone)}"
            )
        others = [{"id": found.id, "name": found.name} for found in others_of(self.plan, machines.ours)]
        self.files.describe(addresses, others, about)

    def await_address(self, machine: Machine) -> Address:
        """Waits until the droplet runs and has its addresses."""

        def poll() -> Address | None:
            droplet = self.machines().find(self.plan, machine)
            if droplet is None:
                return None
            if droplet.status in ("off", "archive"):
                raise Failure(f"{machine.name} is {droplet.status}; switch it on and run this again")
            if droplet.status != "active" or droplet.public is None or droplet.private is None:
                return None
            return Address(machine.name, machine.variable, droplet.id, droplet.public, droplet.private)

        return self.polling.until(f"Starting {machine.name}", poll)

    def await_ready(self, machine: Address) -> None:
        """Waits until the first boot is finished, Docker included; prints each change of what is missing."""
        started = time.monotonic()
        printed = ""
        without_docker = 0

        def poll() -> bool | None:
            nonlocal printed, without_docker
            missing = ssh.missing_for_readiness(machine.public, self.files.known_hosts)
            if missing is None:
                return True
            without_docker = without_docker + 1 if missing == ssh.WITHOUT_DOCKER else 0
            if without_docker == WITHOUT_DOCKER_MAX:
                raise Failure(f"{machine.name}: {missing}; it costs: remove it, and run this again")
            if "host key" in missing.lower():
                raise Failure(
                    f"{machine.name} at {machine.public} has another ssh host key than before: {missing}. "
                    f"If the machine is new: ssh-keygen -f {self.files.known_hosts} -R {machine.public}"
                )
            if missing != printed:
                print(f"{machine.name}: {time.monotonic() - started:.0f} s, {missing}", flush=True)
                printed = missing
            return None

        self.polling.until(f"Preparing {machine.name} at {machine.public}", poll)
        print(f"{machine.name}: ready", flush=True)


def table(machines: list[Address]) -> str:
    """A readable table of names and addresses."""
    rows = [("machine", "public", "private"), *((m.name, m.public, m.private) for m in machines)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
