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
# The drivers of other systems; what it needs from the runner is in there.
DRIVERS = Path("runner/drivers/target/drivers.jar")
JARS = (EVENTS_DB, APP, RUNNER)
# Its time is when they were built: Maven leaves jars alone whose own sources did not change.
STAMP = Path("target/local-benchmark.built")

MODULES = ("events-db", "eventsql", "runner", "app")
NOT_SOURCES = ("target", "test", "node_modules")

# The wrapper, or the system's Maven where the wrapper cannot get its own: one place decides.
MAVEN = 'ROOT=$PWD; source scripts/lib/maven.bash; require_maven; exec "${MAVEN[@]}" "$@"'


def sources(root: Path) -> Iterator[Path]:
    """All files that the jars are made of."""
    yield root / "pom.xml"
    for module in MODULES:
        for folder, folders, files in os.walk(root / module):
            folders[:] = [name for name in folders if name not in NOT_SOURCES]
            yield from (Path(folder) / name for name in files)


def is_up_to_date(root: Path) -> bool:
    """Whether every jar is there and no source has changed since they were built."""
    stamp = root / STAMP
    if not stamp.is_file() or not all((root / jar).is_file() for jar in JARS):
        return False
    built = stamp.stat().st_mtime
    return all(source.stat().st_mtime < built for source in sources(root) if source.is_file())


def build(root: Path) -> None:
    """Builds the jars if a source has changed; raises Failure if that does not work."""
    if is_up_to_date(root):
        print("Build: nothing has changed", flush=True)
        return
    print("Building...", flush=True)
    started = time.time()
    # Whether the sources are formatted is for the tests to say.
    options = ["-q", "-B", "-ntp", "-DskipTests", "-Dspotless.check.skip=true"]
    command = ["bash", "-c", MAVEN, "maven", *options, "package"]
    status = subprocess.run(command, cwd=root, check=False).returncode
    if status != 0:
        raise Failure(f"the build failed with status {status}")
    stamp = root / STAMP
    stamp.parent.mkdir(exist_ok=True)
    stamp.touch()
    # A source that was changed meanwhile counts as changed.
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
