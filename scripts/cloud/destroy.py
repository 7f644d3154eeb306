"""Removes everything that has the tag, machines first, the network last."""

from benchmark.errors import Failure

from cloud import inventory, ssh
from cloud.api import Api
from cloud.files import InfraFiles
from cloud.inventory import Inventory
from cloud.plan import Plan
from cloud.polling import Polling


def destroy(api: Api, plan: Plan, present: Inventory, files: InfraFiles, polling: Polling) -> None:
    """Removes what is present; a run after an interruption removes what is left."""
    for droplet in present.droplets:
        for network in droplet["networks"].get("v4", []):
            ssh.forget(str(network["ip_address"]), files.known_hosts)
        api.delete_droplet(int(droplet["id"]))
        print(f"droplet {droplet['name']} ({droplet['id']}): removed", flush=True)

    printed = 0

    def no_droplets() -> bool | None:
        nonlocal printed
        leaving = len(api.droplets(plan.tag))
        if leaving and leaving != printed:
            print(f"droplets still being removed: {leaving}", flush=True)
            printed = leaving
        return None if leaving else True

    polling.until("Removing the droplets", no_droplets)
    for firewall in present.firewalls:
        api.delete_firewall(str(firewall["id"]))
        print(f"firewall {firewall['name']}: removed", flush=True)
    for tag in present.tags:
        api.delete_tag(str(tag["name"]))
        print(f"tag {tag['name']}: removed", flush=True)
    for vpc in present.vpcs:
        api.delete_vpc(str(vpc["id"]))
        print(f"VPC {vpc['name']}: removed", flush=True)
    left = inventory.read_inventory(api, plan)
    if not left.is_empty:
        raise Failure("\n".join(["not everything was removed; run destroy_infra.py again:", *left.lines()]))
    remove_files(files, plan.tag)


def remove_files(files: InfraFiles, tag: str) -> None:
    """Removes the files of the tag's machines, but not those of others, which hold the only passwords."""
    if files.tag == tag:
        files.remove()
    elif files.any_exists:
        print(f"Kept the files in {files.folder}: by its infra.json they do not belong to {tag}.")
