"""Measures how close EventSQL comes to PostgreSQL's limits: see run_limits_benchmark.bash --help."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmark import build
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.java import clean_environment, java, processors
from benchmark.limits_options import LimitsOptions
from benchmark.processes import POLL_SECONDS, Child
from benchmark.workplace import FAILED, WRONG_INPUT, Workplace, run_in_workplace

ROOT = Path(__file__).resolve().parent.parent

# Longer than it takes to end in order; after that it is killed.
LIMITS_STOP_SECONDS = 40


def start_limits(options: LimitsOptions, place: Workplace, database_variables: dict[str, str]) -> Child:
    """Starts what measures."""
    command = [
        *java(*options.java_options()),
        *("-jar", str(ROOT / build.RUNNER), "limits", *options.runner_arguments),
        *("--out", str(place.result)),
        *("--command", options.command(), "--git-commit", build.git_commit(ROOT)),
        *("--cpus", str(processors())),
    ]
    environment = {**clean_environment(), **database_variables}
    output = place.results / "logs" / "limits.out"
    return place.processes.start("limits", command, environment, LIMITS_STOP_SECONDS, output)


def measure(options: LimitsOptions, place: Workplace) -> int:
    """Starts the database, measures and returns the exit status."""
    database, database_variables = place.start_databases(1)
    limits = start_limits(options, place, database_variables)
    try:
        while limits.status is None:
            place.processes.require_running([database])
            time.sleep(POLL_SECONDS)
    except Interrupted:
        print("\nInterrupted; what was measured until now is being written...", flush=True)
        limits.stop()
        raise
    limits.join_readers()
    if limits.status not in (0, FAILED) or not place.result.exists():
        raise Failure(f"measuring ended with status {limits.status}, see {limits.log}")
    return limits.status


def main(arguments: Sequence[str]) -> int:
    try:
        options = LimitsOptions.read(arguments, os.environ)
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    return run_in_workplace(
        ROOT,
        options.folder("RESULTS_DIR", ROOT),
        options.folder("DATA_DIR", ROOT),
        lambda place: measure(options, place),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
