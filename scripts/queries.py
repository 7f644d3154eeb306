"""Measures queries of Apache Flink over a stream: see run_queries.bash --help."""

import argparse
import json
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmark import build, kafka_server
from benchmark.errors import Failure
from benchmark.java import clean_environment, java, processors
from benchmark.processes import POLL_SECONDS
from benchmark.run_context import RunContext, run_benchmark

ROOT = Path(__file__).resolve().parent.parent
MODULE = "runner/queries"
COMMAND = "bash scripts/run_queries.bash"
MAIN_CLASS = "io.eventsql.runner.queries.QueriesCommand"
STOP_SECONDS = 30
# What Flink needs of the JVM.
OPENED = ("util", "util.concurrent", "lang", "lang.reflect", "nio", "net", "text", "time")


def build_module(root: Path) -> None:
    """Compiles the module and what it depends on; raises Failure if that fails."""
    print("Building...", flush=True)
    options = ["-q", "-B", "-ntp", "-Pquick", "-pl", MODULE, "-am", "process-classes"]
    status = subprocess.run(["bash", "-c", build.MAVEN, "maven", *options], cwd=root, check=False).returncode
    if status != 0:
        raise Failure(f"the build failed with status {status}")


def command_line(options: argparse.Namespace, context: RunContext, kafka: str | None) -> list[str]:
    """Returns the command that measures."""
    target = context.root / MODULE / "target"
    class_path = f"{target / 'classes'}:{(target / 'classpath.txt').read_text().strip()}"
    opened = [f"java.base/java.{package}" for package in OPENED] + ["java.base/sun.nio.ch"]
    return [
        *java("-Xmx2g", "-XX:+UseG1GC", f"-Djava.io.tmpdir={context.temporary}"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *(argument for package in opened for argument in ("--add-opens", f"{package}=ALL-UNNAMED")),
        *("-cp", class_path, MAIN_CLASS, "--queries", str(context.root / MODULE / "sql")),
        *(f"--events={options.events}", f"--rounds={options.rounds}"),
        f"--latency-seconds={options.latency_seconds}",
        *(argument for name in options.only or [] for argument in ("--only", name)),
        *(("--kafka", kafka) if kafka else ()),
    ]


def measure(options: argparse.Namespace, arguments: Sequence[str], context: RunContext) -> int:
    """Runs the queries, writes the results, and returns the exit status."""
    result = {
        "command": shlex.join([*COMMAND.split(), *arguments]),
        "commit": build.git_commit(context.root),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": processors(),
    }
    kafka = None
    if options.kafka:
        _, environment = kafka_server.start(context, "false")
        kafka = environment["KAFKA_BOOTSTRAP_SERVERS"]
        result["kafka"] = environment["KAFKA_VERSION"]
    print("Measuring...", flush=True)
    command = command_line(options, context, kafka)
    report = context.results / "report.txt"
    child = context.processes.start("queries", command, clean_environment(), STOP_SECONDS, report)
    while child.status is None:
        time.sleep(POLL_SECONDS)
    if child.status != 0:
        raise Failure(f"measuring ended with status {child.status}, see {child.log}")
    context.result.write_text(json.dumps(result, indent=2) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    result = argparse.ArgumentParser(
        prog=COMMAND,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="""\
Measures the queries in runner/queries/sql with Apache Flink, in one JVM, over a stream on an embedded
server with its defaults: how many stored events per second each processes, and the time until the
results of new events arrive. In the same run: what the library's consumer, the reader, and Flink's
source alone read. Takes about four minutes.""",
        epilog=f"""\
Examples:
  {COMMAND}
  {COMMAND} --kafka
  {COMMAND} --only pass-through --only two-step-pattern --rounds 5

Results: report.txt and result.json, in results/queries/<UTC time>/.
The last line printed is "Results: <path of result.json>".

Exit codes: 0 measured; 1 a step failed; 2 wrong input; 130 after Ctrl-C and 143 after SIGTERM.
""",
    )
    result.add_argument("--events", type=int, default=1_000_000, help="stored events (default: %(default)s)")
    result.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="how often consumer, reader, source and pass-through run, in turns (default: %(default)s)",
    )
    result.add_argument(
        "--latency-seconds",
        type=int,
        default=5,
        help="how long the latency of each query is measured; 0: not at all (default: %(default)s)",
    )
    result.add_argument(
        "--only", action="append", metavar="QUERY", help="a query to measure; may be repeated"
    )
    result.add_argument(
        "--kafka", action="store_true", help="also with Flink's Kafka source, on a broker without fsync"
    )
    return result


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return run_benchmark(
        ROOT,
        ROOT / "results/queries",
        ROOT / "target/queries",
        lambda context: measure(options, arguments, context),
        build_first=build_module,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
