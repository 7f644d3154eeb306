"""Measures how close EventSQL comes to PostgreSQL's limits: see run_limits_benchmark.bash --help."""

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmark import build
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.java import clean_environment, java
from benchmark.limits_options import LimitsOptions
from benchmark.processes import POLL_SECONDS, Child
from benchmark.run_context import FAILED, WRONG_INPUT, RunContext, run_benchmark

ROOT = Path(__file__).resolve().parent.parent

RUN = "limits"
DESCRIPTION = "How close the library comes to the limits of PostgreSQL and of slow handlers."

# More than an orderly stop takes; after that it is killed.
LIMITS_STOP_SECONDS = 40


def start_limits(options: LimitsOptions, context: RunContext, database_variables: dict[str, str]) -> Child:
    """Starts the runner with a workload of one run."""
    workload = context.temporary / f"{RUN}.yaml"
    run = {"name": RUN, "limits": options.settings}
    workload.write_text(json.dumps({"description": DESCRIPTION, "kind": "limits", "runs": [run]}))
    command = [
        *java(*options.java_options()),
        *("-jar", str(ROOT / build.RUNNER), "run", str(workload), "--out", str(context.results)),
        *("--command", options.command(), "--git-commit", build.git_commit(ROOT)),
    ]
    environment = {**clean_environment(), **database_variables}
    output = context.results / "logs" / "limits.out"
    return context.processes.start("limits", command, environment, LIMITS_STOP_SECONDS, output)


def keep_result(context: RunContext) -> None:
    """Moves the files of the only run into the folder of results."""
    folder = context.results / RUN
    if folder.is_dir():
        for file in folder.iterdir():
            file.rename(context.results / file.name)
        folder.rmdir()


def measure(options: LimitsOptions, context: RunContext) -> int:
    """Starts the database, measures and returns the exit status."""
    database, database_variables = context.start_databases(
        1, options.recycled_wal_mb(), settings=options.postgres_settings(), monitoring=True
    )
    limits = start_limits(options, context, database_variables)
    try:
        while limits.status is None:
            context.processes.require_running([database])
            time.sleep(POLL_SECONDS)
    except Interrupted:
        print("\nInterrupted; writing what was measured until now...", flush=True)
        limits.stop()
        keep_result(context)
        raise
    limits.join_readers()
    keep_result(context)
    if limits.status not in (0, FAILED) or not context.result.exists():
        raise Failure(f"measuring ended with status {limits.status}, see {limits.log}")
    return limits.status


def main(arguments: Sequence[str]) -> int:
    try:
        options = LimitsOptions.read(arguments, os.environ)
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    return run_benchmark(
        ROOT,
        options.folder("RESULTS_DIR", ROOT),
        options.folder("DATA_DIR", ROOT),
        lambda context: measure(options, context),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
