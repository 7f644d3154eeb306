"""Measures queries of Apache Flink over a stream: see run_queries.bash --help."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmark import build, kafka_server, module_program
from benchmark.errors import Failure
from benchmark.java import processors
from benchmark.run_context import FAILED, RunContext

ROOT = Path(__file__).resolve().parent.parent
MODULE = "runner/queries"
COMMAND = "bash scripts/run_queries.bash"
MAIN_CLASS = "io.eventsql.runner.queries.QueriesCommand"
# What Flink needs of the JVM.
OPENED = ("util", "util.concurrent", "lang", "lang.reflect", "nio", "net", "text", "time")


def command_line(
    options: argparse.Namespace, arguments: Sequence[str], context: RunContext, kafka: Sequence[str]
) -> list[str]:
    """Returns the command that measures; `kafka` has the options of the broker."""
    opened = [f"java.base/java.{package}" for package in OPENED] + ["java.base/sun.nio.ch"]
    jvm = [
        *("-Xmx2g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
        *(argument for package in opened for argument in ("--add-opens", f"{package}=ALL-UNNAMED")),
    ]
    return [
        *module_program.command_line(context, MODULE, jvm, MAIN_CLASS),
        *("--queries", str(context.root / MODULE / "sql"), "--out", str(context.result)),
        *("--command", shlex.join([*COMMAND.split(), *arguments])),
        *("--git-commit", build.git_commit(context.root), f"--cpus={processors()}"),
        *(f"--events={options.events}", f"--rounds={options.rounds}"),
        f"--latency-seconds={options.latency_seconds}",
        *(argument for name in options.only or [] for argument in ("--only", name)),
        *kafka,
    ]


def measure(options: argparse.Namespace, arguments: Sequence[str], context: RunContext) -> int:
    """Runs the queries, which writes the result, and returns the exit status."""
    kafka: list[str] = []
    if options.kafka:
        _, broker = kafka_server.start(context, "false")
        kafka = [
            f"--kafka={broker['KAFKA_BOOTSTRAP_SERVERS']}",
            f"--kafka-version={broker['KAFKA_VERSION']}",
        ]
    command = command_line(options, arguments, context, kafka)
    status = module_program.execute(context, "queries", command, context.results / "logs/queries.out")
    if status not in (0, FAILED) or not context.result.exists():
        raise Failure(f"measuring ended with status {status}, see {context.results / 'logs'}")
    return status


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
source alone read. All take turns, so that each round has every way. Takes about five minutes on an
idle machine with two processors; with --kafka nine, or seven with --rounds 2.""",
        epilog=f"""\
Examples:
  {COMMAND}
  {COMMAND} --kafka
  {COMMAND} --only pass-through --only two-step-pattern --rounds 5

Results: report.txt and result.json, in results/queries/<UTC time>/. scripts/draw_report.bash draws them,
scripts/results_table.py writes the table of a kept one.
The last line printed is "Results: <path of result.json>".

Exit codes: 0 measured; 1 a step failed, or a query had no results; 2 wrong input; 130 after Ctrl-C and
143 after SIGTERM.
""",
    )
    result.add_argument("--events", type=int, default=1_000_000, help="stored events (default: %(default)s)")
    result.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="how often each way to read is measured, after one that warms up (default: %(default)s)",
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
    return module_program.run(ROOT, MODULE, lambda context: measure(options, arguments, context))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
