"""The steps of every benchmark: build, measure, stop everything, print the path of the results."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmark import build
from benchmark.errors import Failure, Interrupted
from benchmark.folders import create_result_folder, temporary_folder
from benchmark.java import clean_environment, database_environment, java
from benchmark.processes import Child, Processes
from benchmark.signals import Signals

FAILED = 1
WRONG_INPUT = 2

DATABASES_START_SECONDS = 180
# More than an orderly stop takes; after that they are killed.
DATABASES_STOP_SECONDS = 60


@dataclass(frozen=True)
class RunContext:
    """One run's folders and processes."""

    root: Path
    results: Path
    temporary: Path
    processes: Processes

    @property
    def result(self) -> Path:
        return self.results / "result.json"

    def start_databases(
        self,
        count: int,
        recycled_wal_mb: int = 0,
        standbys: str = "none",
        settings: Sequence[str] = (),
        monitoring: bool = False,
    ) -> tuple[Child, dict[str, str]]:
        """Starts durable databases; returns the process and the environment for their clients.

        `settings` are NAME=VALUE and replace those of postgresql.conf.
        """
        print(f"Starting {count} database{'' if count == 1 else 's'}...", flush=True)
        out = self.temporary / "databases.json"
        command = [
            *java("-Xmx128m", "-XX:+UseSerialGC"),
            *("-jar", str(self.root / build.EVENTS_DB), "--count", str(count)),
            *(argument for setting in settings for argument in ("--setting", setting)),
            *(["--monitoring"] if monitoring else []),
            *("--recycled-wal", str(recycled_wal_mb), "--standbys", standbys),
            *("--data-folder", str(self.temporary / "data"), "--out", str(out), "--stop-on-stdin-close"),
        ]
        databases = self.processes.start("databases", command, clean_environment(), DATABASES_STOP_SECONDS)
        self.processes.wait_until(out.exists, "Starting the databases", DATABASES_START_SECONDS, [databases])
        return databases, database_environment(json.loads(out.read_text())["servers"])


@contextmanager
def run_context(root: Path, signals: Signals, results: Path, temporary: Path) -> Iterator[RunContext]:
    """Provides a run's context; when the block ends, stops its processes, and then removes the data."""
    logs = results / "logs"
    logs.mkdir(parents=True)
    # Stop before removing, whatever happens.
    with temporary_folder(temporary) as data, Processes(signals, logs, root) as processes:
        yield RunContext(root, results, data, processes)


def run_benchmark(
    root: Path,
    results_parent: Path,
    data_parent: Path,
    measure: Callable[[RunContext], int],
    finish: Callable[[Path], None] = lambda _: None,
    build_first: Callable[[Path], None] = build.build,
) -> int:
    """Builds, measures, and stops all processes in any case; returns the exit status.

    Each run has a folder of results and one of data, both named after its time; the data is removed at
    the end. If there is a result, `finish` gets its folder after all processes have stopped.
    """
    signals = Signals()
    results: Path | None = None
    try:
        signals.install()
        build_first(root)
        results = create_result_folder(results_parent, datetime.now(UTC))
        with run_context(root, signals, results, data_parent / results.name) as context:
            status = measure(context)
    except Failure as e:
        print(f"The benchmark failed: {e}", file=sys.stderr)
        return FAILED
    except Interrupted as e:
        status = 128 + e.signal_number
    if results and (results / "result.json").exists():
        finish(results)
        print(f"Results: {results / 'result.json'}", flush=True)
    return status
