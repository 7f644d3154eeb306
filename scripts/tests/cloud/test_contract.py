"""Checks every request of the scripts against DigitalOcean's own API description, served by Prism."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloud.api import Api
from cloud.cloud_init import user_data
from cloud.errors import ApiError
from cloud.plan import Plan, prices, total
from cloud.polling import Polling
from tests.cloud.fake_api import FINGERPRINT, PUBLIC_KEY
from tests.repository import SCRIPTS

pytestmark = pytest.mark.slow

DESCRIPTION = Path(
    os.environ.get("DIGITALOCEAN_OPENAPI") or SCRIPTS.parent / "../shared/digitalocean/openapi-subset.json"
).resolve()
PRISM = SCRIPTS / "tests/prism"
PRISM_COMMAND = PRISM / "node_modules/.bin/prism"
START_SECONDS = 120

SIZES = {"app": "s-1vcpu-1gb", "events-db": "s-1vcpu-1gb"}
PLAN = Plan.of("eventsql-benchmark", "fra1", "debian-12-x64", SIZES, 3, ["203.0.113.0/24", "::/0"])
FIREWALL = "bb4b2611-3d72-467b-8602-280330ecd65c"
VPC = "5a4981aa-9653-4bd1-bef5-d6bff52042e4"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_prism()
    log = tmp_path_factory.mktemp("prism") / "log"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("w") as output:
        prism = subprocess.Popen(
            [str(PRISM_COMMAND), "mock", "--errors", "-h", "127.0.0.1", "-p", str(port), str(DESCRIPTION)],
            stdout=output,
            stderr=output,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_SECONDS
        while not answers(url):
            assert prism.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield url
    finally:
        prism.terminate()
        prism.wait(timeout=30)


def require_prism() -> None:
    if not DESCRIPTION.is_file():
        pytest.skip(f"the API's description is not at {DESCRIPTION}; DIGITALOCEAN_OPENAPI may say where")
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Prism needs Node with npm (Debian: apt-get install npm)")
    if not PRISM_COMMAND.exists():
        install = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund"], cwd=PRISM, capture_output=True, text=True
        )
        if install.returncode != 0:
            pytest.skip(f"npm could not install Prism: {install.stderr.strip().splitlines()[-1:]}")


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/v2/sizes", timeout=5).close()
    except urllib.error.HTTPError as e:
        return e.code == 401
    except OSError:
        return False
    return True


@pytest.fixture
def api(url: str) -> Api:
    return Api("a-token", url, Polling(pause_seconds=0.1, wait_seconds=10))


def test_reads_keep_the_contract(api: Api) -> None:
    assert api.ssh_key(FINGERPRINT).public_key
    assert [tag.name for tag in api.tags()]
    assert [vpc.id and vpc.ip_range and vpc.region and vpc.name for vpc in api.vpcs()]
    assert [rules for firewall in api.firewalls() for rules in firewall.inbound]
    for droplet in api.droplets():
        assert droplet.id and droplet.name and droplet.status and droplet.region and droplet.size
        assert droplet.image and droplet.vpc_id and droplet.price.hourly > 0
    assert [member.urn for member in api.vpc_members(VPC)]


def test_price_comes_from_the_sizes_of_the_api(api: Api) -> None:
    price = total(PLAN, prices(PLAN, api.sizes(), PLAN.machines))

    assert str(price) == "0.0298 USD an hour, at most 20.00 USD a month"


def test_creates_keep_the_contract(api: Api) -> None:
    assert api.create_tag({"name": PLAN.tag}, lambda: None).name
    vpc = api.create_vpc(PLAN.vpc(), lambda: None)
    assert api.create_firewall(PLAN.firewall(PLAN.allowed_ranges), lambda: None).inbound
    for machine in PLAN.machines:
        body = PLAN.droplet(machine, vpc.id, 7, user_data(PUBLIC_KEY))
        assert api.create_droplet(body, lambda: None).id


def test_changes_keep_the_contract(api: Api) -> None:
    assert api.replace_firewall(FIREWALL, PLAN.firewall(["203.0.113.7/32"])).inbound
    api.tag_droplet(PLAN.tag, 3164494)


def test_removals_keep_the_contract(api: Api) -> None:
    api.delete_droplet(3164494)
    api.delete_firewall(FIREWALL)
    api.delete_tag(PLAN.tag)
    api.delete_vpc(VPC)


def test_request_that_breaks_the_contract_is_refused(api: Api) -> None:
    """Otherwise the other tests would prove nothing."""
    body = {**PLAN.firewall(["203.0.113.7/32"]), "inbound_rules": [{"protocol": "carrier pigeon"}]}

    with pytest.raises(ApiError) as refused:
        api.create_firewall(body, lambda: None)

    assert refused.value.status in (400, 422)
