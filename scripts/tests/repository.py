"""A repository with the real scripts, empty jars that count as built, and a fake `java`."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmark import build

SCRIPTS = Path(__file__).parent.parent
SCRIPT_OF = {"local": "local_benchmark.py", "limits": "limits_benchmark.py", "workload": "workload.py"}
# Workloads write where the main job writes.
FOLDER_OF = {"workload": "local"}


def is_running(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@dataclass(frozen=True)
class Repository:
    """Runs the script of one kind of benchmark: "local", "limits" or "workload"."""

    root: Path
    kind: str

    @staticmethod
    def create(root: Path, kind: str) -> "Repository":
        # With what Python has compiled: otherwise every test would compile the scripts again.
        shutil.copytree(SCRIPTS, root / "scripts", ignore=shutil.ignore_patterns("tests"))
        for jar in (*build.JARS, build.STAMP):
            (root / jar).parent.mkdir(parents=True, exist_ok=True)
            (root / jar).touch()
        (root / "pom.xml").touch()
        os.utime(root / "pom.xml", (0, 0))
        java = root / "jdk/bin/java"
        java.parent.mkdir(parents=True)
        java.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPTS}/tests/stand_in_java.py" "$@"\n')
        java.chmod(0o755)
        return Repository(root, kind)

    def start(self, stand_in: str = "", *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.root / "scripts" / SCRIPT_OF[self.kind]), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "JAVA_HOME": str(self.root / "jdk"),
                "STAND_IN": stand_in,
                "STAND_IN_IDS": str(self.root / "ids"),
                # See waiting.finish.
                "PYTHONFAULTHANDLER": "1",
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def draw_plots(self) -> None:
        """Lets the scripts draw results, with the packages of this process."""
        (self.root / ".venv").symlink_to(sys.prefix)

    def results(self) -> Path:
        (folder,) = (self.root / "results" / FOLDER_OF.get(self.kind, self.kind)).iterdir()
        return folder

    def assert_nothing_is_left(self, started: int) -> None:
        ids = [int(line) for line in (self.root / "ids").read_text().split()]
        assert len(ids) == started
        assert [number for number in ids if is_running(number)] == []
        assert list((self.root / f"target/{FOLDER_OF.get(self.kind, self.kind)}-benchmark").iterdir()) == []
