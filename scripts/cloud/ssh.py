"""Checks machines over ssh, with host keys pinned in a file of the project."""

import os
import shutil
import subprocess
from pathlib import Path

from benchmark.errors import WrongInput

from cloud.cloud_init import USER

CONNECT_SECONDS = 5
# A first boot installs Docker. It is polled, so a single check may be short.
CHECK_SECONDS = 30

BOOTING = 75
BOOTED_WITHOUT_DOCKER = 76
READY = (
    f"test -e /var/lib/cloud/instance/boot-finished || exit {BOOTING}; "
    f"docker info >/dev/null || exit {BOOTED_WITHOUT_DOCKER}"
)
WITHOUT_DOCKER = "its first boot has ended without Docker, see /var/log/cloud-init-output.log"


def require() -> None:
    """Raises WrongInput where no machine could be reached, before any is created."""
    if shutil.which("ssh") is None:
        raise WrongInput("the program ssh is not in PATH (Debian: apt-get install openssh-client)")
    identity = os.environ.get("SSH_KEY_FILE", "")
    if identity and not Path(identity).is_file():
        raise WrongInput(f"SSH_KEY_FILE must be a private key, but {identity} is no file")


def options(known_hosts: Path) -> list[str]:
    """A key seen at the first contact is kept; another one later is refused.

    The file is quoted: ssh takes several, with blanks between them. Each check is a login of its own: a
    shared connection keeps the groups of the first one, which the first boot has not changed yet.
    """
    identity = os.environ.get("SSH_KEY_FILE", "")
    return [
        *("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"),
        *("-o", "ControlMaster=no", "-o", "ControlPath=none"),
        *("-o", "StrictHostKeyChecking=accept-new", "-o", f'UserKnownHostsFile="{known_hosts}"'),
        *(("-i", identity, "-o", "IdentitiesOnly=yes") if identity else ()),
    ]


def missing_for_readiness(address: str, known_hosts: Path) -> str | None:
    """Returns None once the machine has booted completely, else a few words on what is missing."""
    try:
        result = subprocess.run(
            ["ssh", *options(known_hosts), f"{USER}@{address}", READY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "no answer over ssh"
    if result.returncode == 0:
        return None
    if result.returncode == BOOTED_WITHOUT_DOCKER:
        return WITHOUT_DOCKER
    last = result.stderr.strip().splitlines()[-1:] or [f"ssh ended with {result.returncode}"]
    return last[0] if result.returncode == 255 else "still installing"


def forget(address: str, known_hosts: Path) -> None:
    """Forgets a removed machine's key, because its address will be assigned to another machine."""
    if known_hosts.exists() and shutil.which("ssh-keygen") is not None:
        subprocess.run(
            ["ssh-keygen", "-f", str(known_hosts), "-R", address], capture_output=True, check=False
        )
