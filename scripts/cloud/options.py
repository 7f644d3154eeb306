"""Options of the scripts, from the command line and the environment."""

import argparse
import ipaddress
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from benchmark.errors import WrongInput

from cloud.api import API_URL, Api
from cloud.files import InfraFiles
from cloud.plan import Plan
from cloud.polling import Polling

ROOT = Path(__file__).resolve().parent.parent.parent
TAG = "eventsql-benchmark"
DATABASES = 3

ENVIRONMENT = """environment:
  DO_API_TOKEN         the API's token; read from here only, and never printed
  SSH_KEY_FINGERPRINT  MD5 fingerprint of an ssh key of the account (prepare_infra.py), as
                       `ssh-keygen -E md5 -lf KEY.pub` prints it
  SSH_KEY_FILE         its private key, where ssh does not find it on its own

exit codes: 0 done; 1 something failed, run it again to resume; 2 wrong input; 130 after Ctrl-C
"""


def parser(description: str, examples: str) -> argparse.ArgumentParser:
    """A parser with the options that all scripts have."""
    result = argparse.ArgumentParser(
        description=description,
        epilog=f"{ENVIRONMENT}\nexamples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "--tag", help=f"marks and names everything that is created [that of infra.json, else {TAG}]"
    )
    result.add_argument(
        "--folder", type=Path, default=ROOT, help="where infra.env and the like are [the repository]"
    )
    result.add_argument("--api-url", default=API_URL, help=f"[{API_URL}]")
    result.add_argument("--wait-seconds", type=float, default=900.0, help="how long each step may take [900]")
    result.add_argument("--pause-seconds", type=float, default=3.0, help="time between two polls [3]")
    return result


def add_plan(result: argparse.ArgumentParser) -> None:
    """Adds the options of the machines to create."""
    result.add_argument("--region", default="fra1", help="where the machines are [fra1]")
    result.add_argument("--image", default="debian-12-x64", help="of the machines [debian-12-x64]")
    result.add_argument(
        "--databases",
        type=int,
        help=f"machines with a database, 1 to 16 [that of the last time, by infra.json, else {DATABASES}]",
    )
    result.add_argument(
        "--events-db-size", default="s-4vcpu-8gb-amd", help="of each of them [s-4vcpu-8gb-amd]"
    )
    result.add_argument(
        "--app-size", default="s-2vcpu-2gb-amd", help="of the consumer's machine [s-2vcpu-2gb-amd]"
    )
    result.add_argument(
        "--allow",
        action="append",
        metavar="RANGE",
        help="addresses that may use ssh and ping, such as 203.0.113.7/32; may be repeated; can be changed "
        "while the machines run [those that may already; anywhere if the firewall is new]",
    )


def tag(options: argparse.Namespace) -> str:
    return options.tag or files(options).tag or TAG


def plan(options: argparse.Namespace) -> Plan:
    ranges = options.allow or []
    databases = options.databases
    if databases is None:
        databases = files(options).databases(tag(options)) or DATABASES
    for text in ranges:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            raise WrongInput(
                f"--allow must be a range of addresses such as 203.0.113.0/24, but is '{text}'"
            ) from None
    sizes = {"app": options.app_size, "events-db": options.events_db_size}
    return Plan.of(tag(options), options.region, options.image, sizes, databases, ranges)


def polling(options: argparse.Namespace) -> Polling:
    for name in ("wait_seconds", "pause_seconds"):
        value = getattr(options, name)
        if not math.isfinite(value) or value < 0:
            raise WrongInput(f"--{name.replace('_', '-')} must be 0 or more, but is {value}")
    return Polling(options.pause_seconds, options.wait_seconds)


def api(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Api:
    token = _required(environment, "DO_API_TOKEN")
    if re.fullmatch(r"[!-~]+", token) is None:
        # No request could ever be sent with it.
        raise WrongInput(
            "DO_API_TOKEN must be one word of ASCII, but has a blank, a line break or the like in it"
        )
    return Api(token, options.api_url, polling(options))


def fingerprint(environment: Mapping[str, str] = os.environ) -> str:
    """The fingerprint as the API knows it: 16 bytes in lower case, without a prefix."""
    given = _required(environment, "SSH_KEY_FINGERPRINT")
    text = re.sub(r"^md5:", "", given.lower())
    if re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){15}", text) is None:
        raise WrongInput(
            "SSH_KEY_FINGERPRINT must be an MD5 fingerprint of 16 bytes such as 3b:16:…:45, as "
            f"`ssh-keygen -E md5 -lf KEY.pub` prints it, but is '{given}'"
        )
    return text


def files(options: argparse.Namespace) -> InfraFiles:
    if not options.folder.is_dir():
        raise WrongInput(f"--folder must be a folder, but is {options.folder}")
    return InfraFiles(options.folder.resolve())


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise WrongInput(f"{name} must be set in the environment (see --help)")
    return value
