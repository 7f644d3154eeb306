"""Measures what the library allocates for an event: see run_microbenchmarks.bash --help."""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark import build, module_program
from benchmark.errors import Failure
from benchmark.java import processors
from benchmark.run_context import RunContext

ROOT = Path(__file__).resolve().parent.parent
MODULE = "runner/microbenchmarks"
COMMAND = "bash scripts/run_microbenchmarks.bash"
ALLOCATED = "gc.alloc.rate.norm"


@dataclass(frozen=True)
class Measured:
    """What one event costs in one benchmark: exact bytes, and a time that depends on the machine's load."""

    benchmark: str
    parameters: dict[str, str]
    bytes_allocated: float
    microseconds: float

    @staticmethod
    def read(result: dict[str, Any]) -> "Measured":
        """Returns one entry of JMH's JSON."""
        parts = result["benchmark"].split(".")
        metrics = result["secondaryMetrics"]
        allocated = next(value for name, value in metrics.items() if name.endswith(ALLOCATED))
        return Measured(
            ".".join(parts[-2:]),
            result.get("params", {}),
            round(allocated["score"], 1),
            round(result["primaryMetric"]["score"], 3),
        )


def table(measured: Sequence[Measured]) -> str:
    """Returns the report: a line for each benchmark."""
    lines = [f"{'benchmark':<32} {'parameters':<12} {'bytes/event':>12} {'us/event':>10}"]
    for one in measured:
        parameters = " ".join(f"{name}={value}" for name, value in one.parameters.items())
        lines.append(
            f"{one.benchmark:<32} {parameters:<12} {one.bytes_allocated:>12.0f} {one.microseconds:>10.2f}"
        )
    return "\n".join(lines) + "\n"


def command_line(options: argparse.Namespace, context: RunContext, raw: Path) -> list[str]:
    """Returns the command that runs JMH."""
    jvm = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command = module_program.command_line(context, MODULE, jvm, "org.openjdk.jmh.Main")
    command += ["-prof", "gc", "-foe", "true", "-rf", "json", "-rff", str(raw)]
    # The databases of the measuring processes live and end there.
    command += ["-jvmArgsAppend", f"-Djava.io.tmpdir={context.temporary}"]
    if options.smoke:
        command += ["-wi", "0", "-i", "1", "-r", "100ms"]
    return [*command, *(options.only or [])]


def measure(options: argparse.Namespace, arguments: Sequence[str], context: RunContext) -> int:
    """Runs the benchmarks, writes the results, and returns the exit status."""
    raw = context.temporary / "jmh.json"
    status = module_program.execute(context, "jmh", command_line(options, context, raw))
    if status != 0 or not raw.exists():
        raise Failure(f"measuring ended with status {status}, see {context.results / 'logs'}")
    entries = json.loads(raw.read_text())
    if not entries:
        raise Failure("no benchmark has such a name, see --help")
    measured = [Measured.read(entry) for entry in entries]
    first = entries[0]
    result = {
        "command": shlex.join([*COMMAND.split(), *arguments]),
        "commit": build.git_commit(context.root),
        "java": f"{first['vmName']} {first['vmVersion']}",
        "jmh": first["jmhVersion"],
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": processors(),
        "benchmarks": [asdict(one) for one in measured],
    }
    context.result.write_text(json.dumps(result, indent=2) + "\n")
    report = table(measured)
    (context.results / "report.txt").write_text(report)
    print(report, end="", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    result = argparse.ArgumentParser(
        prog=COMMAND,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="""\
Measures the bytes that the library allocates for an event (JMH), and the time that the client takes for it:
builds the library, starts a real PostgreSQL for each benchmark, measures and stops everything it started.
Takes about three minutes.

  PublishBenchmark  batch: publishAll with 100 events; asynchronous: 100 calls of publishAsync;
                    single: publish, by one caller, so that each event is a batch of its own
  ReadBenchmark     page: 1,000 stored events
  ConsumeBenchmark  single, batch, byKey: 100,000 stored events to a handler of one event, of a page, and
                    of one event with eight keys at the same time, and their committed offsets
  KeyBenchmark      latest: the last event of a key, among 1,000 events
  HeadersBenchmark  encode, decode: two headers

The bytes are exact, also on a busy machine: all threads' allocations divided by the events, the driver's
and the pool's included. The times contain the waiting for the database and mean something only on a
machine that does nothing else.""",
        epilog=f"""\
Examples:
  {COMMAND}
  {COMMAND} --only PublishBenchmark
  {COMMAND} --only ConsumeBenchmark.byKey --only ReadBenchmark

Results: result.json, report.txt and JMH's output, in results/microbenchmarks/<UTC time>/.
The last line printed is "Results: <path of result.json>".

Exit codes: 0 measured; 1 a step failed; 2 wrong input; 130 after Ctrl-C and 143 after SIGTERM.
""",
    )
    result.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="run only the benchmarks whose names contain it; may be repeated",
    )
    result.add_argument(
        "--smoke", action="store_true", help="show only that they run: one short round, no warm-up"
    )
    return result


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return module_program.run(ROOT, MODULE, lambda context: measure(options, arguments, context))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
