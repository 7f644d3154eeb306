"""Removes everything that has the tag, machines first, the network last."""

from benchmark.errors import Failure

from cloud import found, ssh
from cloud.api import Api
from cloud.files import InfraFiles
from cloud.found import Everything
from cloud.patience import Patience
from cloud.plan import Plan


def destroy(api: Api, plan: Plan, there: Everything, files: InfraFiles, patience: Patience) -> None:
    """Removes what was found; interrupted, it goes on with what is left."""
    for droplet in there.droplets:
        for network in droplet["networks"].get("v4", []):
            ssh.forget(str(network["ip_address"]), files.known_hosts)
        api.delete_droplet(int(droplet["id"]))
        print(f"droplet {droplet['name']} ({droplet['id']}): removed", flush=True)

    told = 0

    def no_droplets() -> bool | None:
        nonlocal told
        leaving = len(api.droplets(plan.tag))
        if leaving and leaving != told:
            print(f"droplets that are still leaving: {leaving}", flush=True)
            told = leaving
        return None if leaving else True

    patience.until("Removing the droplets", no_droplets)
    for firewall in there.firewalls:
        api.delete_firewall(str(firewall["id"]))
        print(f"firewall {firewall['name']}: removed", flush=True)
    for tag in there.tags:
        api.delete_tag(str(tag["name"]))
        print(f"tag {tag['name']}: removed", flush=True)
    for vpc in there.vpcs:
        api.delete_vpc(str(vpc["id"]))
        print(f"VPC {vpc['name']}: removed", flush=True)
    left = found.everything(api, plan)
    if not left.is_empty:
        raise Failure("\n".join(["this is still there; run destroy_infra.py again:", *left.lines()]))
    remove_files(files, plan.tag)


def remove_files(files: InfraFiles, tag: str) -> None:
    """Removes the files of the tag's machines; those of others have passwords that are nowhere else."""
    if files.tag == tag:
        files.remove()
    elif files.some_are_there:
        print(f"The files in {files.folder} stay: infra.json there does not say that they are of {tag}.")
