"""The options of a limits benchmark, from the command line, and its folders, from the environment."""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.settings import (
    HEAP_MB,
    OPTIONS_AT_A_RATE,
    OPTIONS_AT_FULL_SPEED,
    POSTGRES_SETTINGS,
    SECONDS_MAX,
    Variable,
)

LIMITS = (
    "append",
    "read",
    "snapshot",
    "handlers",
    "transactions",
    "outbox",
    "large",
    "retention",
    "compaction",
    "cost",
    "fanout",
    "tail",
    "scheduled",
)

# The others take long, or much disk space.
DEFAULTS = list(LIMITS[:6])

# A run of these alone says how long an event takes, not how many there can be.
AT_A_RATE = {"snapshot", "outbox", "retention", "compaction", "tail", "scheduled"}


@dataclass(frozen=True)
class Number:
    """An option that is a number in a workload file of kind limits, which has the same range."""

    name: str
    default: int
    minimum: float
    maximum: int
    help: str

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    def check(self, text: str) -> float:
        """Raises ArgumentTypeError for a text that is no number of the range."""
        try:
            number = int(text) if isinstance(self.minimum, int) else float(text)
        except ValueError:
            number = self.minimum - 1
        if not self.minimum <= number <= self.maximum:
            raise argparse.ArgumentTypeError(
                f"must be a number between {self.minimum} and {self.maximum}, but is '{text}'"
            )
        return number


NUMBERS = (
    Number(
        "rounds",
        3,
        1,
        1_000,
        "measured rounds of append, read, transactions, large, retention, cost, fanout and scheduled",
    ),
    Number("round-seconds", 3, 0.05, 3_600, "length of a measured round"),
    Number("read-events", 300_000, 1_000, 1_000_000_000, "events in the stream that is read"),
    Number(
        "snapshot-seconds",
        60,
        1,
        SECONDS_MAX,
        "length of each of the four runs of the part snapshot: with and without, 1 and 10 partitions",
    ),
    Number("snapshot-rate", 2_000, 1, 1_000_000, "events/s published there"),
    Number("handlers-events", 20_000, 1, 10_000_000, "events handled by key in parallel"),
    Number(
        "handlers-sequential-events",
        500,
        1,
        10_000_000,
        "events handled one at a time, at most 100 a second",
    ),
    Number("handlers-concurrency", 50, 1, 10_000, "keys handled at the same time"),
    Number(
        "outbox-seconds",
        60,
        1,
        SECONDS_MAX,
        "length of each of the two runs of the part outbox: without and with",
    ),
    Number("outbox-rate", 500, 1, 1_000_000, "transactions/s there, and plain publishes/s"),
    Number(
        "large-events",
        10_000_000,
        100_000,
        10_000_000_000,
        "events of the large stream (300 bytes each)",
    ),
    Number("retention-seconds", 20, 1, SECONDS_MAX, "length of each interval of retention"),
    Number("burst-seconds", 60, 1, SECONDS_MAX, "length of the burst of retention"),
    Number("burst-rate", 100_000, 100, 1_000_000, "events/s there, in calls of 100"),
    Number("compaction-seconds", 1_200, 1, SECONDS_MAX, "length of compaction"),
    Number("compaction-rate", 20_000, 10, 1_000_000, "events/s there, in calls of 10"),
    Number("cost-seconds", 10, 1, SECONDS_MAX, "length of each interval of cost and fanout"),
    Number("tail-seconds", 60, 1, 600, "length of each of the three rates of tail"),
    Number("scheduled-events", 1_000_000, 1, 100_000_000, "pending events of scheduled"),
    Number("scheduled-seconds", 30, 1, SECONDS_MAX, "how long 1,000 events/s are due there"),
    Number(
        "warmup-seconds",
        5,
        0,
        SECONDS_MAX,
        "warm-up before each run of snapshot, outbox, retention, cost, fanout and tail",
    ),
)

VARIABLES = (
    Variable(
        "RESULTS_DIR", "results/limits", "text", "each run writes a folder named after its time in here"
    ),
    Variable(
        "DATA_DIR", "target/limits-benchmark", "text", "the database's data while it runs; not on a tmpfs"
    ),
    Variable(
        "JAVA_OPTS_RUNNER",
        "",
        "options",
        "JVM options of the runner [1 GB, the Serial collector, and the simple compiler and a touched heap if"
        " all parts are at a rate]",
    ),
    POSTGRES_SETTINGS,
    # A database in use has them. A new one creates each file while those who commit wait.
    Variable("RECYCLED_WAL_MB", "1024", "number", "MB of recycled WAL files in the new database", 0, 2_000),
)
# Part of the command that repeats a run.
REPEATED = ("POSTGRES_SETTINGS", "RECYCLED_WAL_MB", "JAVA_OPTS_RUNNER")


@dataclass(frozen=True)
class LimitsOptions:
    """Checked options: the run's settings as in a workload file, and its folders."""

    settings: Mapping[str, Any]
    given: tuple[str, ...]
    values: Mapping[str, str]
    at_a_rate: bool

    @staticmethod
    def read(arguments: Sequence[str], environment: Mapping[str, str]) -> "LimitsOptions":
        """Reads and checks everything.

        Raises WrongInput for a wrong variable. A wrong option ends the process with 2, --help with 0.
        """
        parsed = parser().parse_args(arguments)
        settings = {"parts": parsed.only or DEFAULTS, "storage": parsed.storage}
        settings |= {number.field: getattr(parsed, number.field) for number in NUMBERS}
        values = {v.name: v.check(environment.get(v.name, "").strip() or v.default) for v in VARIABLES}
        parts = frozenset(parsed.only or [])
        return LimitsOptions(settings, tuple(arguments), values, bool(parts) and parts <= AT_A_RATE)

    def folder(self, name: str, root: Path) -> Path:
        """Returns a folder's absolute path; a relative one is inside the repository."""
        return (root / Path(self.values[name]).expanduser()).resolve()

    def java_options(self) -> list[str]:
        """Returns the JVM options, split as a shell does."""
        others = OPTIONS_AT_A_RATE if self.at_a_rate else OPTIONS_AT_FULL_SPEED
        return shlex.split(self.values["JAVA_OPTS_RUNNER"]) or [
            f"-Xms{HEAP_MB}m",
            f"-Xmx{HEAP_MB}m",
            *others,
        ]

    def recycled_wal_mb(self) -> int:
        return int(self.values["RECYCLED_WAL_MB"])

    def postgres_settings(self) -> list[str]:
        """Returns the settings of the database as NAME=VALUE."""
        return self.values["POSTGRES_SETTINGS"].split()

    def command(self) -> str:
        """Returns the command that repeats the run, from the repository's folder."""
        defaults = {v.name: v.default for v in VARIABLES}
        changed = [
            f"{name}={shlex.quote(self.values[name])}"
            for name in REPEATED
            if self.values[name] != defaults[name]
        ]
        script = ["bash", "scripts/run_limits_benchmark.bash"]
        return " ".join([*changed, *script, *(shlex.quote(argument) for argument in self.given)])


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    width = max(len(v.name) for v in VARIABLES)
    variables = "\n".join(
        f"  {v.name:<{width}}  {v.help}" + (f" [{v.default}]" if v.default else "") for v in VARIABLES
    )
    command = "bash scripts/run_limits_benchmark.bash"
    result = argparse.ArgumentParser(
        prog=command,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="""\
Measures how close EventSQL comes to what PostgreSQL and slow handlers allow: builds it, starts one
database (real PostgreSQL, durable), measures, writes the results and stops everything it started.
Takes about eleven minutes with the defaults.

  append    the same events through binary COPY into a stream's tables, and through the library
  read      reading a stream in pages of 10 to 10,000 events, never analyzed and analyzed, and with a consumer
  snapshot  publish latency at a steady rate, without and with an old snapshot held open
  handlers  a handler that takes 10 ms on one partition, with events of 1,000 different keys: one event
            at a time, and several keys at a time; checks that each key stays in order and nothing is lost
  transactions
            a business transaction of Spring with a publish, next to the same with a row in a plain table; and
            how fast the relay moves what many transactions publish
  outbox    publishing inside transactions and plain publishes next to it, without and with an old
            snapshot held open: latency of the plain publishes, size of the outbox; checks that nothing is
            lost
  large     publishing and consuming, with and without millions of stored events, in turns; not by default
  retention publishing while segments expire, with idle readers; a burst into small segments; not by default
  compaction
            updates of the same 100 keys in a compacted stream, with a consumer; not by default
  cost      CPU of the database and the client, transactions and WAL per event and per byte of keys,
            values and headers, at three rates and at full speed, without and with a checkpoint; page images
            are shown apart; not by default
  fanout    the same for one and for ten consumers of a stream in one process; not by default
  tail      what the server's processes wait for, and what pauses the JVM, while the slowest percent of
            events is on its way at three rates; not by default
  scheduled publishing with a million scheduled events and with none, in turns; how late due events are; not
            by default""",
        epilog=f"""\
Environment variables [default]:
{variables}

Examples:
  {command}
  {command} --only append
  {command} --only read --read-events 1000000 --rounds 5
  {command} --only snapshot --snapshot-seconds 600
  {command} --only handlers
  {command} --only transactions
  {command} --only outbox --outbox-seconds 600
  {command} --only large --large-events 100000000 --rounds 15
  {command} --only retention --rounds 5
  {command} --only compaction --compaction-seconds 1200
  {command} --only cost --only fanout --rounds 5
  {command} --only append --only cost --storage blocks --rounds 5
  POSTGRES_SETTINGS='min_wal_size=4GB wal_init_zero=off' {command} --only cost

Results: result.json, report.txt and the logs, in RESULTS_DIR/<UTC time>/.
The last line printed is "Results: <path of result.json>".

Exit codes: 0 measured; 1 a publish or a step failed, or a handler did not get each event once and in
the order of its key; 2 wrong input; 130 after Ctrl-C and 143 after
SIGTERM (the parts measured until then are written).
""",
    )
    result.add_argument(
        "--only",
        action="append",
        choices=LIMITS,
        help="measure only this part; may be repeated (default: the first six)",
    )
    result.add_argument(
        "--storage",
        choices=("rows", "blocks"),
        default="rows",
        help="how the streams of append, read, snapshot, compaction, cost, fanout and tail keep their"
        " events; COPY writes rows [%(default)s]",
    )
    for number in NUMBERS:
        result.add_argument(
            f"--{number.name}",
            metavar="N",
            type=number.check,
            default=number.default,
            help=f"{number.help} ({number.minimum} to {number.maximum}) [%(default)s]",
        )
    return result
