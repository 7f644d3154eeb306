"""Installs programs from Debian packages, where that is possible."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmark.errors import Failure, WrongInput

INSTALL_SECONDS = 600


def require_packages(needed: Path, packages: Sequence[str]) -> None:
    """Installs packages unless one of their files exists.

    Raises WrongInput where that needs root or another system, Failure where it fails.
    """
    if needed.exists():
        return
    install = f"apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise WrongInput(f"{needed} is needed, and only root on Debian can install it (Debian: {install})")
    print(f"Installing {' '.join(packages)}...", flush=True)
    # Only the programs: the packages must not start or stop services.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        result = subprocess.run(
            ["apt-get", "-q", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if result.returncode != 0:
            raise Failure(f"apt-get {' '.join(command)} failed: {result.stderr.strip()}")
    if not needed.exists():
        raise Failure(f"{install} did not install {needed}")
