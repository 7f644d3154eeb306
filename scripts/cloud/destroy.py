"""Removes everything that prepare_infra.py has created for a tag, machines first, the network last."""

from benchmark.errors import Failure

from cloud import inventory, ssh
from cloud.api import Api
from cloud.errors import ApiError, NoAnswerError
from cloud.files import InfraFiles
from cloud.inventory import Inventory
from cloud.plan import Plan
from cloud.polling import Polling

UNAUTHORIZED = 401


def destroy(api: Api, plan: Plan, present: Inventory, files: InfraFiles, polling: Polling) -> None:
    """Removes what is present; a run after an interruption removes what is left.

    A machine that the API refuses to remove does not keep the others: they cost. The firewall stays with it.
    """
    known_ids = files.droplet_ids(plan.tag)
    for droplet in present.droplets:
        for address in (droplet.public, droplet.private):
            if address is not None:
                ssh.forget(address, files.known_hosts)
    machines = {droplet.id: droplet.name for droplet in present.droplets}
    machines |= {m.droplet_id: m.name for m in present.unlisted if m.droplet_id is not None}
    removed, problems = set(), []
    for number, name in machines.items():
        try:
            api.delete_droplet(number)
        except (ApiError, NoAnswerError, Failure) as e:
            if isinstance(e, ApiError) and e.status == UNAUTHORIZED:
                raise
            problems.append(f"droplet {name} ({number}) stays, and costs: {e}")
            print(problems[-1], flush=True)
        else:
            removed.add(number)
            print(f"droplet {name} ({number}): removed", flush=True)

    printed = 0

    def no_droplets() -> bool | None:
        nonlocal printed
        leaving = sum(droplet.id in removed for droplet in api.droplets())
        if leaving and leaving != printed:
            print(f"droplets still being removed: {leaving}", flush=True)
            printed = leaving
        return None if leaving else True

    polling.until("Removing the droplets", no_droplets)
    if problems:
        raise Failure("\n".join(["not every machine was removed; run destroy_infra.py again:", *problems]))
    for firewall in present.firewalls:
        api.delete_firewall(firewall.id)
        print(f"firewall {firewall.name}: removed", flush=True)
    for tag in present.tags:
        api.delete_tag(tag.name)
        print(f"tag {tag.name}: removed", flush=True)
    for vpc in present.vpcs:
        api.delete_vpc(vpc.id)
        print(f"VPC {vpc.name}: removed", flush=True)
    left = inventory.read_inventory(api, plan, known_ids, removed)
    if not left.is_empty:
        raise Failure("\n".join(["not everything was removed; run destroy_infra.py again:", *left.lines()]))
    remove_files(files, plan.tag)
    print("\n".join(left.lines_or_nothing()))


def remove_files(files: InfraFiles, tag: str) -> None:
    """Removes the files of the tag's machines, but not those of others, which hold the only passwords."""
    if files.tag == tag:
        files.remove()
    elif files.any_exists:
        print(
            f"Kept the files in {files.folder}: by its infra.json they belong to {files.tag}, not to {tag}."
        )
