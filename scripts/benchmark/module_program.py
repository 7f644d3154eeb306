"""Programs that measure and run from the compiled classes of a module of their own, without a jar."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmark import build
from benchmark.errors import Failure
from benchmark.java import clean_environment, java
from benchmark.processes import POLL_SECONDS
from benchmark.run_context import RunContext, run_benchmark

STOP_SECONDS = 30


def run(root: Path, module: str, measure: Callable[[RunContext], int]) -> int:
    """Compiles the module, measures into results/<name of the module>, and returns the exit status."""
    name = Path(module).name
    return run_benchmark(
        root,
        root / "results" / name,
        root / "target" / name,
        measure,
        build_first=lambda folder: build_module(folder, module),
    )


def build_module(root: Path, module: str) -> None:
    """Compiles the module and what it depends on; raises Failure if that fails."""
    print("Building...", flush=True)
    options = ["-q", "-B", "-ntp", "-Pquick", "-pl", module, "-am", "process-classes"]
    status = subprocess.run(["bash", "-c", build.MAVEN, "maven", *options], cwd=root, check=False).returncode
    if status != 0:
        raise Failure(f"the build failed with status {status}")


def command_line(context: RunContext, module: str, options: Sequence[str], main_class: str) -> list[str]:
    """Returns the command that runs a class of the module; its temporary files are the run's."""
    target = context.root / module / "target"
    class_path = f"{target / 'classes'}:{(target / 'classpath.txt').read_text().strip()}"
    temporary = f"-Djava.io.tmpdir={context.temporary}"
    return [*java(temporary, *options), "-cp", class_path, main_class]


def execute(context: RunContext, name: str, command: Sequence[str], report: Path | None = None) -> int:
    """Runs the command to its end, and returns its exit status; `report` as of Processes.start."""
    print("Measuring...", flush=True)
    child = context.processes.start(name, command, clean_environment(), STOP_SECONDS, report)
    while child.status is None:
        time.sleep(POLL_SECONDS)
    child.join_readers()
    return child.status
