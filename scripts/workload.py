"""Measures workloads on this machine: see run_workload.bash --help."""

import argparse
import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import local_benchmark
from benchmark import build
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.folders import TIME_FORMAT, create_result_folder
from benchmark.java import clean_environment, java
from benchmark.plots import draw
from benchmark.processes import POLL_SECONDS
from benchmark.run_context import FAILED, WRONG_INPUT, RunContext, run_context
from benchmark.servers import Environment, start_servers
from benchmark.settings import Settings
from benchmark.signals import Signals

ROOT = Path(__file__).resolve().parent.parent

RUNNER_MAIN = "io.eventsql.runner.Runner"
RESULTS = Path("results/local")
ROUNDS_MAX = 100
# More than an orderly stop takes; after that it is killed.
RUNNER_STOP_SECONDS = 60
# Approximate time of a run in addition to its load: servers start and stop, and the report is drawn.
RUN_OVERHEAD_SECONDS = 25
# Recycled WAL files of each new database, as in one that has been in use.
RECYCLED_WAL_MB = 1024
# Variables that apply to every run; a workload's own variables are added.
SHARED_VARIABLES = ("DATA_DIR", "JAVA_OPTS_APP", "JAVA_OPTS_RUNNER", "RECYCLED_WAL_MB")


@dataclass(frozen=True)
class PlannedRun:
    """A run from `runner plan`; `file` is the workload as given on the command line."""

    file: str
    workload: str
    name: str
    kind: str
    environment: Environment
    variables: Mapping[str, str]
    seconds: float

    @property
    def title(self) -> str:
        return f"{self.workload}/{self.name}"

    @staticmethod
    def of(file: str, plan: Mapping[str, Any], run: Mapping[str, Any]) -> "PlannedRun":
        needed = run["environment"]
        return PlannedRun(
            file,
            plan["workload"],
            run["name"],
            run["kind"],
            Environment(
                needed["server"], needed["databases"], needed["standbys"], needed.get("server_options") or {}
            ),
            run.get("variables") or {},
            run["seconds"],
        )


@dataclass
class Series:
    """Runs measured one after the other, each with servers of its own."""

    runs: Sequence[PlannedRun]
    overrides: Sequence[str]
    folder: Path
    data: Path
    signals: Signals
    rounds: int = 1
    plain: bool = False
    failed: list[str] = field(default_factory=list)

    def measure(self) -> int:
        """Measures and draws everything; returns the exit status."""
        status = 0
        turns = list(in_turns(self.runs, self.rounds))
        planned = [run for _, run in turns]
        for number, (place, run) in enumerate(turns):
            print(f"\n{progress(planned, number)}", flush=True)
            folder = self.folder / place / run.name
            # Plots take longer than a short run; draw_report.bash draws those of several rounds on demand.
            drawn = self.rounds == 1
            try:
                self.measure_run(run, folder)
                if drawn:
                    draw_result(folder)
            except Interrupted as e:
                if drawn:
                    draw_result(folder)
                skipped = len(planned) - number - 1
                print(f"{skipped} run{'' if skipped == 1 else 's'} skipped", flush=True)
                status = 128 + e.signal_number
                break
        if len(list(self.folder.rglob("result.json"))) > 1:
            draw(ROOT, self.folder, "--comparison-only")
        for title in self.failed:
            print(f"Failed: {title}", file=sys.stderr)
        print(f"Results: {self.folder}", flush=True)
        return status or (FAILED if self.failed else 0)

    def measure_run(self, run: PlannedRun, folder: Path) -> None:
        """Measures one run; records a failure."""
        name = f"{datetime.now(UTC).strftime(TIME_FORMAT)}-{run.name}"
        try:
            with run_context(ROOT, self.signals, folder, self.data / name) as context:
                status = (
                    measure_publish(run, context)
                    if run.kind == "publish"
                    else self.measure_load(run, context)
                )
            if status != 0:
                self.failed.append(f"{run.title}: see {folder / 'report.txt'}")
        except (Failure, WrongInput) as e:
            self.failed.append(run.title)
            print(f"{run.title} failed: {e}", file=sys.stderr, flush=True)
        self.signals.listen_again()

    def measure_load(self, run: PlannedRun, context: RunContext) -> int:
        """Measures by `runner run`; returns its exit status."""
        settings = read_settings({})
        recycled = int(settings.values["RECYCLED_WAL_MB"] or RECYCLED_WAL_MB)
        environment = replace(run.environment, monitoring=run.kind == "limits")
        servers = start_servers(context, environment, recycled)
        command = [
            *runner("run", *settings.workload_runner_options),
            *(run.file, *options("--set", self.overrides), "--only", run.name),
            *("--out", str(context.results.parent)),
            *("--command", repeat_command(run, self.overrides), "--git-commit", build.git_commit(ROOT)),
            *options("--process", [f"{name}={pid}" for name, pid in servers.process_ids.items()]),
        ]
        variables = {**clean_environment(), **servers.variables}
        output = context.results / "logs" / "runner.out"
        child = context.processes.start("runner", command, variables, RUNNER_STOP_SECONDS, output)
        try:
            while child.status is None:
                context.processes.require_running(servers.needed)
                time.sleep(POLL_SECONDS)
        except Interrupted:
            print("\nInterrupted; writing what was measured until now...", flush=True)
            child.stop()
            raise
        child.join_readers()
        if child.status not in (0, FAILED) or not context.result.exists():
            raise Failure(f"the runner ended with status {child.status}, see {child.log}")
        if self.plain:
            self.measure_plain(run, context, variables)
        return child.status

    def measure_plain(self, run: PlannedRun, context: RunContext, environment: Mapping[str, str]) -> None:
        """Measures plain programs and the machine by `runner plain`, on the servers of the run."""
        command = [
            *runner("plain", *read_settings({}).workload_runner_options),
            *(run.file, *options("--set", self.overrides), "--only", run.name),
            *("--out", str(context.results.parent)),
        ]
        output = context.results / "logs" / "plain.out"
        child = context.processes.start("plain", command, environment, RUNNER_STOP_SECONDS, output)
        while child.status is None:
            time.sleep(POLL_SECONDS)
        child.join_readers()
        if child.status != 0:
            raise Failure(f"the plain programs ended with status {child.status}, see {child.log}")


def in_turns(runs: Sequence[PlannedRun], rounds: int) -> Iterator[tuple[Path, PlannedRun]]:
    """All runs once per round, so that a slow quarter of an hour hits all, and the folder of each."""
    for number in range(rounds):
        for run in runs:
            yield Path(run.workload) / (f"round-{number + 1}" if rounds > 1 else ""), run


def draw_result(folder: Path) -> None:
    """Draws the result, if there is one."""
    if (folder / "result.json").exists():
        draw(ROOT, folder)


def measure_publish(run: PlannedRun, context: RunContext) -> int:
    """Measures with the main job; returns its exit status."""
    settings = read_settings(run.variables)
    environment = Environment(
        run.environment.server, settings.shards, run.environment.standbys, run.environment.server_options
    )
    return local_benchmark.measure(
        local_benchmark.Run(settings, secrets.token_hex(4), context, environment, run.workload)
    )


def read_settings(variables: Mapping[str, str]) -> Settings:
    """Reads the settings of a run; raises WrongInput for a wrong one."""
    return Settings.read(
        {**{name: os.environ[name] for name in SHARED_VARIABLES if name in os.environ}, **variables}
    )


def runner(command: str, *java_options: str) -> list[str]:
    """Returns the beginning of a command line, with the drivers of other systems if they are built."""
    jars = [ROOT / build.RUNNER, ROOT / build.DRIVERS]
    path = os.pathsep.join(str(jar) for jar in jars if jar.exists())
    return [*java(*java_options), "-cp", path, RUNNER_MAIN, command]


def options(name: str, values: Sequence[str]) -> list[str]:
    return [argument for value in values for argument in (name, value)]


def repeat_command(run: PlannedRun, overrides: Sequence[str]) -> str:
    """Returns the command that repeats the run, from the repository's folder."""
    chosen = [
        f"{name}={os.environ[name]}"
        for name in SHARED_VARIABLES
        if name != "DATA_DIR" and os.environ.get(name)
    ]
    variables = [
        f"{name}={shlex.quote(value)}" for name, _, value in (text.partition("=") for text in chosen)
    ]
    arguments = ["scripts/run_workload.bash", run.file, "--only", run.name, *options("--set", overrides)]
    return " ".join([*variables, "bash", *(shlex.quote(argument) for argument in arguments)])


def plan(file: str, overrides: Sequence[str], only: Sequence[str]) -> list[PlannedRun]:
    """Lets the runner plan a workload; raises WrongInput with its message about a wrong one."""
    command = [*runner("plan", "-Xmx128m"), file, *options("--set", overrides), *options("--only", only)]
    ended = subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=False
    )
    if ended.returncode == WRONG_INPUT:
        raise WrongInput(ended.stderr.strip())
    if ended.returncode != 0:
        raise Failure(f"planning {file} ended with status {ended.returncode}:\n{ended.stderr}")
    planned = json.loads(ended.stdout)
    return [PlannedRun.of(file, planned, run) for run in planned["runs"]]


def progress(runs: Sequence[PlannedRun], number: int) -> str:
    """Describes the next run, and about how long it and the rest take."""
    seconds = [run.seconds + RUN_OVERHEAD_SECONDS for run in runs[number:]]
    rest = f", about {duration(sum(seconds))} with all that follow" if len(seconds) > 1 else ""
    return f"=== {number + 1} of {len(runs)}: {runs[number].title}, about {duration(seconds[0])}{rest}"


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def workload_file(text: str) -> str:
    """Makes the path of a file absolute; returns a name unchanged."""
    return str(Path(text).resolve()) if text.endswith(".yaml") and not Path(text).is_absolute() else text


def result_folder(given: Path | None, runs: Sequence[PlannedRun], rounds: int) -> Path:
    """Returns the folder of the results; raises WrongInput if it has one of a run already."""
    if given is None:
        return create_result_folder(ROOT / RESULTS, datetime.now(UTC))
    for place, run in in_turns(runs, rounds):
        if (given / place / run.name).exists():
            raise WrongInput(f"--results: {given / place / run.name} already exists")
    return given.resolve()


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run_workload.bash",
        description="Measures workloads on this machine: builds EventSQL, starts the servers that each run"
        " needs, measures, stops everything, and draws report.html of each run and comparison.html of all.",
        epilog="""Environment variables:
  JAVA_OPTS_RUNNER, JAVA_OPTS_APP, RECYCLED_WAL_MB, DATA_DIR   as in run_local_benchmark.bash --help,
      but RECYCLED_WAL_MB is 1024 where a run is not of kind publish
  WORKLOADS_DIR   folder of the workload files [runner/workloads]

Examples:
  bash scripts/run_workload.bash --list
  bash scripts/run_workload.bash fan-out
  bash scripts/run_workload.bash stress --only publishing --set phases.2.seconds=30
  bash scripts/run_workload.bash rate fan-out streams --results results/2026-11-22
  bash scripts/run_workload.bash compare --rounds 5 --plain
  bash scripts/run_workload.bash hold-still --set schedule_factor=0.2

Results: DIR/<workload>/<run>/, or DIR/<workload>/round-<n>/<run>/ with --rounds: result.json,
  report.txt, report.html, plots and logs.
The last line printed is "Results: <DIR>".

Exit codes: 0 good; 1 a run failed (the others are still measured); 2 wrong input;
130 after Ctrl-C and 143 after SIGTERM (what was measured until then is written and drawn).
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", metavar="WORKLOAD", nargs="*", help="name of a workload, or a YAML file")
    parser.add_argument("--list", action="store_true", help="show all workloads")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help="change a field in every run; may be repeated",
    )
    parser.add_argument(
        "--only", metavar="RUN", action="append", default=[], help="only this run; may be repeated"
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=int,
        choices=range(1, ROUNDS_MAX + 1),
        default=1,
        help="measure all runs N times, in turns; without plots of single runs if N is above 1 [1]",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="after each run, measure plain client programs and the machine on its servers: plain.json",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help="folder to write to, which may contain other runs [results/local/<UTC time>]",
    )
    parsed = parser.parse_args(arguments)
    if not parsed.workloads and not parsed.list:
        parser.error("WORKLOAD is missing (--list shows all)")
    return parsed


def main(arguments: Sequence[str]) -> int:
    parsed = read_arguments(arguments)
    signals = Signals()
    signals.install()
    try:
        build.build(ROOT)
        if parsed.list:
            command = runner("list", "-Xmx128m")
            return subprocess.run(command, cwd=ROOT, env=clean_environment(), check=False).returncode
        settings = read_settings({})
        runs = [
            run
            for workload in parsed.workloads
            for run in plan(workload_file(workload), parsed.set, parsed.only)
        ]
        for run in runs:
            # Reports a wrong variable before measuring the first run.
            read_settings(run.variables)
        folder = result_folder(parsed.results, runs, parsed.rounds)
        data = settings.folder("DATA_DIR", ROOT)
        return Series(runs, parsed.set, folder, data, signals, parsed.rounds, parsed.plain).measure()
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    except Failure as e:
        print(f"The benchmark failed: {e}", file=sys.stderr)
        return FAILED
    except Interrupted as e:
        return 128 + e.signal_number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
