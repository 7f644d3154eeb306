"""Creates what is missing, and waits until the machines can be used.

Each step first checks whether its result exists. So a second run changes nothing, and a run after an
interruption resumes where the first one stopped.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass

from benchmark.errors import Failure, WrongInput

from cloud import inventory, ssh
from cloud.api import Api, Json
from cloud.cloud_init import user_data
from cloud.errors import ApiError
from cloud.files import Address, InfraFiles
from cloud.plan import Machine, Plan, prices, total
from cloud.polling import Polling


def show_plan(api: Api, plan: Plan, missing: Collection[Machine]) -> None:
    """Prints what would be created and what it costs; asks the API for sizes only."""
    known = prices(plan, api.sizes(), missing)
    print(f"In {plan.region}, all with the tag {plan.tag}:")
    print(f"  VPC       {plan.vpc_name}")
    print(f"  firewall  {plan.firewall_name}: ssh and ping from {', '.join(plan.allowed_ranges)}")
    for machine in plan.machines:
        print(f"  droplet   {machine.name}: {machine.size}, {plan.image}, {known[machine.size]}")
    print(f"Together: {total(plan, known)}", flush=True)


@dataclass(frozen=True)
class Preparation:
    """One run of prepare_infra.py."""

    api: Api
    plan: Plan
    files: InfraFiles
    polling: Polling

    def run(self, fingerprint: str) -> list[Address]:
        key = self.ssh_key(fingerprint)
        # A size that is sold out by now does not matter for machines that exist.
        machines = self.plan.machines
        missing = [each for each in machines if inventory.find_droplet(self.api, self.plan, each) is None]
        show_plan(self.api, self.plan, missing)
        about = {"tag": self.plan.tag, "region": self.plan.region}
        self.files.claim(about)
        # The firewall needs the tag, and a machine must never be without its firewall.
        self.api.create_tag({"name": self.plan.tag}, lambda: inventory.find_tag(self.api, self.plan.tag))
        vpc = self.api.create_vpc(self.plan.vpc(), lambda: inventory.find_vpc(self.api, self.plan))
        print(f"VPC {vpc['name']}: {vpc['ip_range']}", flush=True)
        self.ensure_firewall(str(vpc["ip_range"]))
        # Before the machines: a database's password is generated only once.
        self.files.add_passwords(len(self.plan.machines) - 1)
        for machine in self.plan.machines:
            self.ensure_droplet(machine, str(vpc["id"]), key)
        addresses = [self.await_address(machine) for machine in self.plan.machines]
        for each in addresses:
            self.await_ready(each)
        self.files.write(addresses, about)
        return addresses

    def ssh_key(self, fingerprint: str) -> Json:
        try:
            return self.api.ssh_key(fingerprint)
        except ApiError as e:
            if e.status == 404:
                raise WrongInput(
                    "SSH_KEY_FINGERPRINT names no key of this account; "
                    "add the public key at https://cloud.digitalocean.com/account/security"
                ) from None
            raise

    def ensure_firewall(self, vpc_range: str) -> None:
        plan = self.plan
        body = plan.firewall(vpc_range)
        firewall = self.api.create_firewall(
            body, lambda: inventory.find_firewall(self.api, plan.tag, plan.firewall_name)
        )
        if _inbound(firewall) != _inbound(body):
            raise Failure(
                f"the firewall {plan.firewall_name} differs from the options; "
                "give the same --allow as before, or run destroy_infra.py first"
            )
        print(f"firewall {plan.firewall_name}: ready", flush=True)

    def ensure_droplet(self, machine: Machine, vpc_id: str, key: Json) -> None:
        body = self.plan.droplet(machine, vpc_id, int(key["id"]), user_data(str(key["public_key"])))
        droplet = self.api.create_droplet(body, lambda: inventory.find_droplet(self.api, self.plan, machine))
        print(f"droplet {machine.name}: {droplet['id']}, {droplet['status']}", flush=True)

    def await_address(self, machine: Machine) -> Address:
        """Waits until the droplet runs and has its addresses."""

        def poll() -> Address | None:
            droplet = inventory.find_droplet(self.api, self.plan, machine)
            if droplet is None:
                return None
            if droplet["status"] in ("off", "archive"):
                raise Failure(f"{machine.name} is {droplet['status']}; switch it on and run this again")
            public, private = _address_of(droplet, "public"), _address_of(droplet, "private")
            if droplet["status"] != "active" or public is None or private is None:
                return None
            return Address(machine.name, machine.variable, int(droplet["id"]), public, private)

        return self.polling.until(f"Starting {machine.name}", poll)

    def await_ready(self, machine: Address) -> None:
        """Waits until the first boot is finished, Docker included; prints each change of what is missing."""
        started = time.monotonic()
        printed = ""

        def poll() -> bool | None:
            nonlocal printed
            missing = ssh.missing_for_readiness(machine.public, self.files.known_hosts)
            if missing is None:
                return True
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


def _inbound(firewall: Json) -> list[tuple[str, str, list[str]]]:
    """The inbound rules in a fixed order, because the API may return them in another one."""
    return sorted(
        (rule["protocol"], str(rule["ports"]), sorted(rule["sources"].get("addresses") or []))
        for rule in firewall["inbound_rules"]
    )


def _address_of(droplet: Json, kind: str) -> str | None:
    for network in droplet["networks"].get("v4", []):
        if network["type"] == kind:
            return str(network["ip_address"])
    return None


def table(machines: list[Address]) -> str:
    """A readable table of names and addresses."""
    rows = [("machine", "public", "private"), *((m.name, m.public, m.private) for m in machines)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
