"""Measures EventSQL on this machine: see run_local_benchmark.bash --help."""

import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark import build
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.java import clean_environment, java, processors
from benchmark.plots import draw
from benchmark.processes import POLL_SECONDS, Child
from benchmark.run_context import FAILED, WRONG_INPUT, RunContext, run_benchmark
from benchmark.servers import Environment, Servers, start_servers
from benchmark.settings import Settings, usage

ROOT = Path(__file__).resolve().parent.parent

APP_START_SECONDS = 120
# More than an orderly stop takes; after that they are killed.
APP_STOP_SECONDS = 30
RUNNER_STOP_SECONDS = 40
SUMMARIZE_SECONDS = 120


@dataclass(frozen=True)
class App:
    """A running app and its address."""

    process: Child
    address: str


@dataclass(frozen=True)
class Run:
    """One run: its settings, its id, its context, the servers it needs, and its workload if it has one."""

    settings: Settings
    run_id: str
    context: RunContext
    environment: Environment
    workload: str | None = None

    def start_apps(self, servers: Servers) -> list[App]:
        """Starts all members of the consumer and waits until each runs.

        The first one creates the stream; the others start concurrently. The runners wait until they
        share the partitions, which is visible in the databases.
        """
        members = self.settings.members
        print("Starting the app..." if members == 1 else f"Starting {members} apps...", flush=True)
        names = ["app"] if members == 1 else [f"app-{number}" for number in range(members)]
        first = self.start_app(names[0], servers.variables)
        first_address = self.await_app(first, servers.needed)
        others = [self.start_app(name, servers.variables) for name in names[1:]]
        apps = [App(first, first_address)]
        for other in others:
            apps.append(App(other, self.await_app(other, servers.needed)))
        return apps

    def port_file(self, name: str) -> Path:
        return self.context.temporary / f"{name}.port"

    def start_app(self, name: str, database_variables: Mapping[str, str]) -> Child:
        environment = {
            **clean_environment(),
            **database_variables,
            **self.settings.app_environment(),
            "SERVER_PORT": "0",
            "PORT_FILE": str(self.port_file(name)),
        }
        command = [*java(*self.settings.app_options), "-jar", str(ROOT / build.APP)]
        return self.context.processes.start(name, command, environment, APP_STOP_SECONDS)

    def await_app(self, app: Child, servers: Sequence[Child]) -> str:
        """Waits until the app reports that it consumes; returns its address."""
        needed = [*servers, app]
        port_file = self.port_file(app.name)
        wait_until = self.context.processes.wait_until
        wait_until(port_file.exists, f"Starting the {app.name}", APP_START_SECONDS, needed)
        address = f"http://localhost:{port_file.read_text().strip()}"
        wait_until(lambda: is_healthy(address), f"The health of the {app.name}", APP_START_SECONDS, needed)
        return address

    def start_runners(self, servers: Servers, apps: Sequence[App]) -> list[Child]:
        """Starts one runner a shard, all at the same time; the first one samples all other processes."""
        processes = {**servers.process_ids, **{app.process.name: app.process.process.pid for app in apps}}
        count = self.settings.shards
        runners = []
        for number in range(count):
            environment = {
                **clean_environment(),
                **servers.variables,
                **self.settings.runner_environment(),
                "APP_URLS": ",".join(app.address for app in apps),
                "RUN_ID": self.run_id,
                "RUNNER_NUMBER": str(number),
                "RUNNERS": str(count),
                "RUNNER_RESULT": str(self.runner_result(number)),
            }
            if number == 0:
                environment["PROCESSES"] = ",".join(f"{name}={pid}" for name, pid in processes.items())
            command = [
                *java(*self.settings.runner_options),
                *("-jar", str(ROOT / build.RUNNER), "publish"),
            ]
            report = self.context.results / f"runner-{number}.txt"
            runners.append(
                self.context.processes.start(
                    f"runner-{number}", command, environment, RUNNER_STOP_SECONDS, report
                )
            )
        return runners

    def runner_result(self, number: int) -> Path:
        return self.context.results / f"runner-{number}.json"

    def await_runners(self, runners: Sequence[Child], needed: Sequence[Child]) -> None:
        """Waits until all runners have ended; stops the others if one has aborted without a result."""
        while any(runner.status is None for runner in runners):
            self.context.processes.require_running(needed)
            for number, runner in enumerate(runners):
                if runner.status is not None and not self.runner_result(number).exists():
                    stop_all(runners)
                    return
            time.sleep(POLL_SECONDS)
        for runner in runners:
            runner.join_readers()

    def summarize(self, apps: Sequence[App]) -> int:
        """Merges the results of the runners and the reports of the apps; returns the exit status."""
        command = [
            *java("-Xmx512m", "-XX:+UseSerialGC"),
            *("-jar", str(ROOT / build.RUNNER), "summarize", "--run", self.run_id),
            *(f"--app-url={app.address}" for app in apps),
            *("--runner-results", str(self.context.results), "--out", str(self.context.result)),
            *("--command", self.settings.command(), "--git-commit", build.git_commit(ROOT)),
            *("--cpus", str(processors())),
            *("--recycled-wal-mb", str(self.settings.recycled_wal_mb)),
            *(("--workload", self.workload) if self.workload else ()),
        ]
        summary = self.context.processes.start("summarize", command, clean_environment(), 5)
        deadline = time.monotonic() + SUMMARIZE_SECONDS
        while summary.status is None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if summary.status not in (0, FAILED) or not self.context.result.exists():
            raise Failure(f"summarizing ended with status {summary.status}:\n{summary.log.read_text()}")
        return summary.status

    def write_report(self) -> None:
        """Appends each runner's report to the summary, and prints the summary."""
        report = self.context.results / "report.txt"
        summary = report.read_text()
        parts = [summary]
        for number in range(self.settings.shards):
            text = self.context.results / f"runner-{number}.txt"
            if text.exists():
                parts.append(f"\nRunner {number}:\n{text.read_text()}")
        report.write_text("".join(parts))
        print(f"\n{summary}", flush=True)


def local_servers(settings: Settings) -> Environment:
    """Returns the servers of the main job: databases without standbys."""
    return Environment(
        "postgres", settings.shards, "none", {}, tuple(settings.values["POSTGRES_SETTINGS"].split())
    )


def is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/actuator/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def stop_all(children: Sequence[Child]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        child.stop()


def measure(run: Run) -> int:
    """Starts everything, waits for the runners and summarizes; returns the exit status."""
    servers = start_servers(run.context, run.environment, run.settings.recycled_wal_mb)
    apps = run.start_apps(servers)
    runners: list[Child] = []
    interrupted: Interrupted | None = None
    try:
        runners = run.start_runners(servers, apps)
        run.await_runners(runners, [*servers.needed, *(app.process for app in apps)])
    except Interrupted as e:
        interrupted = e
        print("\nInterrupted; writing what was measured until now...", flush=True)
        stop_all(runners)
    if interrupted and not any(run.context.results.glob("runner-*.json")):
        raise interrupted
    status = run.summarize(apps)
    run.write_report()
    if interrupted:
        raise interrupted
    return status


def main(arguments: Sequence[str]) -> int:
    if arguments in (["--help"], ["-h"]):
        print(usage(), end="")
        return 0
    if arguments:
        print(f"unknown argument {arguments[0]} (see --help)", file=sys.stderr)
        return WRONG_INPUT
    try:
        settings = Settings.read(os.environ)
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    return run_benchmark(
        ROOT,
        settings.folder("RESULTS_DIR", ROOT),
        settings.folder("DATA_DIR", ROOT),
        lambda context: measure(Run(settings, secrets.token_hex(4), context, local_servers(settings))),
        lambda results: draw(ROOT, results),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
