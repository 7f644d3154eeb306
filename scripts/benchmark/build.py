"""Builds the jars the benchmark runs."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmark.errors import Failure

EVENTS_DB = Path("events-db/target/events-db.jar")
APP = Path("app/target/app.jar")
RUNNER = Path("runner/cli/target/runner.jar")
# The drivers of other systems, with what they need from the runner.
DRIVERS = Path("runner/drivers/target/drivers.jar")
JARS = (EVENTS_DB, APP, RUNNER)
# Its modification time is the time of the build: Maven does not touch jars whose own sources did not change.
STAMP = Path("target/local-benchmark.built")

MODULES = ("events-db", "eventsql", "runner", "app")
NOT_SOURCES = ("target", "test", "node_modules")

# Runs the wrapper, or the system's Maven where the wrapper cannot download its own.
MAVEN = 'ROOT=$PWD; source scripts/lib/maven.bash; require_maven; exec "${MAVEN[@]}" "$@"'


def sources(root: Path) -> Iterator[Path]:
    """Returns all files that the jars are built from."""
    yield root / "pom.xml"
    for module in MODULES:
        for folder, folders, files in os.walk(root / module):
            folders[:] = [name for name in folders if name not in NOT_SOURCES]
            yield from (Path(folder) / name for name in files)


def is_up_to_date(root: Path) -> bool:
    """Whether every jar exists and no source has changed since they were built."""
    stamp = root / STAMP
    if not stamp.is_file() or not all((root / jar).is_file() for jar in JARS):
        return False
    built = stamp.stat().st_mtime
    return all(source.stat().st_mtime < built for source in sources(root) if source.is_file())


def build(root: Path) -> None:
    """Builds the jars if a source has changed; raises Failure if the build fails."""
    if is_up_to_date(root):
        print("Build: nothing has changed", flush=True)
        return
    print("Building...", flush=True)
    started = time.time()
    # The tests check the format of the sources.
    options = ["-q", "-B", "-ntp", "-DskipTests", "-Dspotless.check.skip=true"]
    command = ["bash", "-c", MAVEN, "maven", *options, "package"]
    status = subprocess.run(command, cwd=root, check=False).returncode
    if status != 0:
        raise Failure(f"the build failed with status {status}")
    stamp = root / STAMP
    stamp.parent.mkdir(exist_ok=True)
    stamp.touch()
    # A source changed during the build counts as changed.
    os.utime(stamp, (started, started))


def git_commit(root: Path) -> str:
    """The commit the sources are from, with "-dirty" where they differ from it; "unknown" without git."""
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True, timeout=60
    )
    return result.stdout.strip()
