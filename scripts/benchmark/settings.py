"""The settings of a local benchmark, taken from the environment."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmark.errors import WrongInput

SECONDS_MAX = 86_400
CALL_BYTES_MAX = 7_549_747
# The heaps of several apps together, and the smallest one.
APPS_HEAP_MB = 2048
APP_HEAP_MIN_MB = 256

# At a rate, a run is over before an optimizing compiler has finished, and on few processors it would measure
# the compiler. The simple one finishes within seconds; its code is slower, so that latencies are not
# flattered. The heap gets its memory before the measurement.
OPTIONS_AT_A_RATE = ("-XX:+UseSerialGC", "-XX:+AlwaysPreTouch", "-XX:TieredStopAtLevel=1")
# At full speed, the speed of the code decides.
OPTIONS_AT_FULL_SPEED = ("-XX:+UseSerialGC",)
HEAP_MB = 1024
# The part of the heap that is committed and touched at a rate: all JVMs of a default run take 2 GB.
HEAP_AT_A_RATE_MB = 512

# The bounds of a warm-up that lasts until the JVMs hardly compile. At full speed, more would fill the disk.
WARMUP_MIN_SECONDS = 10
WARMUP_MAX_SECONDS = 60
WARMUP_AT_FULL_SPEED_MAX_SECONDS = 30


@dataclass(frozen=True)
class Variable:
    """An environment variable: its default ("" for none), its range, and its meaning."""

    name: str
    default: str
    kind: Literal["number", "boolean", "text", "options", "settings"]
    help: str
    minimum: int = 0
    maximum: int = 0
    to_runner: bool = False
    to_app: bool = False

    def check(self, value: str) -> str:
        """Returns the normalized value; raises WrongInput naming the variable and the limit."""
        if self.kind == "number":
            return self._check_number(value)
        if self.kind == "boolean":
            if value.lower() not in ("true", "false"):
                raise WrongInput(f"{self.name} must be true or false, but is '{value}'")
            return value.lower()
        if self.kind == "options":
            try:
                shlex.split(value)
            except ValueError as e:
                raise WrongInput(f"{self.name} cannot be split into options ({e}): '{value}'") from None
        if self.kind == "settings":
            for setting in value.split():
                if not re.fullmatch(r"[a-z_.]+=\S+", setting):
                    raise WrongInput(
                        f"{self.name} must be NAME=VALUE, separated by spaces, but has '{setting}'"
                    )
        return value

    def _check_number(self, value: str) -> str:
        if (
            value.isascii()
            and value.removeprefix("-").isdigit()
            and self.minimum <= int(value) <= self.maximum
        ):
            return str(int(value))
        raise WrongInput(
            f"{self.name} must be a number between {self.minimum} and {self.maximum}, but is '{value}'"
        )


def _number(
    name: str,
    default: str,
    minimum: int,
    maximum: int,
    help: str,
    to_runner: bool = True,
    to_app: bool = False,
) -> Variable:
    return Variable(name, default, "number", help, minimum, maximum, to_runner, to_app)


POSTGRES_SETTINGS = Variable(
    "POSTGRES_SETTINGS",
    "",
    "settings",
    "NAME=VALUE ...: settings of the databases instead of those of events-db/postgresql.conf",
)

VARIABLES = (
    _number("SHARDS", "3", 1, 16, "databases, and runners at the same time", to_runner=False),
    _number("EVENTS_RATE", "5000", 0, 1_000_000, "events/s of each runner; 0: as fast as possible"),
    _number("EVENTS_TO_PUBLISH", "100000", 1, 1_000_000_000, "events of each runner, without warm-up"),
    _number("EVENTS_BATCH_SIZE", "1", 1, 5_000, "events per publish call"),
    _number("CALLERS", "50", 1, 10_000, "concurrent callers of each runner when the rate is 0"),
    _number(
        "MEMBERS",
        "1",
        1,
        16,
        "consumer apps that share the partitions as members of one consumer",
        to_runner=False,
    ),
    _number("PARTITIONS", "10", 1, 1_000, "partitions of the stream on each shard", to_app=True),
    _number(
        "EVENT_BYTES", "", 80, 4_194_304, "exact size of a value; unset: the account_created event, about 230"
    ),
    Variable(
        "KEYED",
        "false",
        "boolean",
        "true: events have keys and go to all shards; false: each runner writes to its own shard only",
        to_runner=True,
    ),
    _number("KEYS", "1000", 1, 1_000_000, "different keys of each runner"),
    Variable(
        "ASYNC",
        "false",
        "boolean",
        "true: callers do not wait for acknowledgements when the rate is 0",
        to_runner=True,
    ),
    _number(
        "WARMUP_SECONDS",
        "",
        0,
        SECONDS_MAX,
        "the same load before, not measured; unset: until the JVMs hardly compile, "
        f"{WARMUP_MIN_SECONDS} to {WARMUP_MAX_SECONDS} s, "
        f"at full speed to {WARMUP_AT_FULL_SPEED_MAX_SECONDS} s",
        to_runner=False,
    ),
    _number(
        "CONSUME_TIMEOUT", "120", 1, SECONDS_MAX, "seconds to wait until everything published is consumed"
    ),
    _number(
        "PAGE_EVENTS",
        "",
        1,
        10_000,
        "events per fetch of the app; unset: the library's default",
        to_runner=False,
        to_app=True,
    ),
    _number(
        "RECYCLED_WAL_MB",
        "",
        0,
        2_000,
        "MB of recycled WAL files in each new database, as in one that has been in use; "
        "unset: 1024 if EVENTS_RATE is 0, else 0",
        to_runner=False,
    ),
    Variable("RESULTS_DIR", "results/local", "text", "each run creates a folder named after its time in it"),
    Variable(
        "DATA_DIR", "target/local-benchmark", "text", "the databases' data while they run; not on a tmpfs"
    ),
    POSTGRES_SETTINGS,
    Variable(
        "JAVA_OPTS_APP",
        "",
        "options",
        "JVM options of each app; unset: as for the runners; "
        "several MEMBERS share 2 GB of heap, each at least 256 MB",
    ),
    Variable(
        "JAVA_OPTS_RUNNER",
        "",
        "options",
        f"JVM options of each runner; unset: a heap of 1 GB and {' '.join(OPTIONS_AT_FULL_SPEED)}, "
        f"at a rate {' '.join(OPTIONS_AT_A_RATE[1:])}, too",
    ),
)


@dataclass(frozen=True)
class Settings:
    """Checked settings; `values` holds every variable, "" where it is unset and has no default."""

    values: Mapping[str, str]
    given: tuple[str, ...]

    @staticmethod
    def read(environment: Mapping[str, str]) -> "Settings":
        """Reads and checks all variables; raises WrongInput at the first wrong one."""
        values: dict[str, str] = {}
        given: list[str] = []
        for variable in VARIABLES:
            text = environment.get(variable.name, "").strip()
            if text:
                given.append(variable.name)
            chosen = text or variable.default
            values[variable.name] = variable.check(chosen) if chosen else ""
        settings = Settings(values, tuple(given))
        settings._check_together()
        return settings

    def _check_together(self) -> None:
        if self.values["KEYED"] == "true" and self.number("EVENTS_RATE") == 0:
            callers, keys = self.number("CALLERS"), self.number("KEYS")
            if keys < callers:
                raise WrongInput(
                    f"KEYS must be at least CALLERS ({callers}), "
                    f"because a key belongs to one caller, but is {keys}"
                )
        if self.values["EVENT_BYTES"]:
            call_bytes = self.number("EVENT_BYTES") * self.number("EVENTS_BATCH_SIZE")
            if call_bytes > CALL_BYTES_MAX:
                raise WrongInput(
                    f"EVENT_BYTES times EVENTS_BATCH_SIZE must be at most {CALL_BYTES_MAX}, "
                    f"but is {call_bytes}"
                )

    def number(self, name: str) -> int:
        return int(self.values[name])

    @property
    def shards(self) -> int:
        return self.number("SHARDS")

    @property
    def members(self) -> int:
        return self.number("MEMBERS")

    @property
    def app_options(self) -> list[str]:
        """JVM options of each app; several apps share the memory unless JAVA_OPTS_APP is set."""
        heap = max(APPS_HEAP_MB // self.members, APP_HEAP_MIN_MB)
        return self.options("JAVA_OPTS_APP") or self._default_options(self.has_rate, min(heap, HEAP_MB))

    @property
    def runner_options(self) -> list[str]:
        """JVM options of each runner."""
        return self.options("JAVA_OPTS_RUNNER") or self._default_options(self.has_rate, HEAP_MB)

    @property
    def workload_runner_options(self) -> list[str]:
        """JVM options of a runner whose workload has phases at full speed, or may have."""
        return self.options("JAVA_OPTS_RUNNER") or self._default_options(False, HEAP_MB)

    @staticmethod
    def _default_options(has_rate: bool, heap_mb: int) -> list[str]:
        committed = min(HEAP_AT_A_RATE_MB, heap_mb) if has_rate else heap_mb
        others = OPTIONS_AT_A_RATE if has_rate else OPTIONS_AT_FULL_SPEED
        return [f"-Xms{committed}m", f"-Xmx{heap_mb}m", *others]

    @property
    def has_rate(self) -> bool:
        return self.number("EVENTS_RATE") > 0

    @property
    def recycled_wal_mb(self) -> int:
        """Full speed needs recycled WAL; otherwise hardly any WAL is written."""
        given = self.values["RECYCLED_WAL_MB"]
        if given:
            return int(given)
        return 1024 if self.number("EVENTS_RATE") == 0 else 0

    def folder(self, name: str, root: Path) -> Path:
        """Returns a folder's absolute path; a relative one is inside the repository."""
        return (root / Path(self.values[name]).expanduser()).resolve()

    def options(self, name: str) -> list[str]:
        """Returns JVM options, split as a shell does."""
        return shlex.split(self.values[name])

    def runner_environment(self) -> dict[str, str]:
        chosen = {v.name: self.values[v.name] for v in VARIABLES if v.to_runner and self.values[v.name]}
        return chosen | self._warmup_environment()

    def _warmup_environment(self) -> dict[str, str]:
        """An explicit duration is exact."""
        exact = self.values["WARMUP_SECONDS"]
        if exact:
            return {"WARMUP_SECONDS": exact, "WARMUP_MAX_SECONDS": "0"}
        longest = WARMUP_MAX_SECONDS if self.has_rate else WARMUP_AT_FULL_SPEED_MAX_SECONDS
        return {"WARMUP_SECONDS": str(WARMUP_MIN_SECONDS), "WARMUP_MAX_SECONDS": str(longest)}

    def app_environment(self) -> dict[str, str]:
        return {v.name: self.values[v.name] for v in VARIABLES if v.to_app and self.values[v.name]}

    def command(self) -> str:
        """Returns the command that repeats the run, from the repository's folder."""
        folders = ("RESULTS_DIR", "DATA_DIR")
        chosen = [f"{name}={shlex.quote(self.values[name])}" for name in self.given if name not in folders]
        return " ".join([*chosen, "bash scripts/run_local_benchmark.bash"])


def usage() -> str:
    """Returns the text of --help."""
    width = max(len(v.name) for v in VARIABLES)
    lines = []
    for v in VARIABLES:
        limits = f" ({v.minimum} to {v.maximum})" if v.kind == "number" else ""
        default = f" [{v.default}]" if v.default else ""
        lines.append(f"  {v.name:<{width}}  {v.help}{limits}{default}")
    return f"""Usage: bash scripts/run_local_benchmark.bash

Measures EventSQL on this machine: builds it, starts databases (real PostgreSQL, durable), the
consumer app (or several) and one runner a shard, writes the results and stops everything it started.

Environment variables [default]:
{chr(10).join(lines)}

Examples:
  bash scripts/run_local_benchmark.bash
  SHARDS=1 EVENTS_RATE=0 bash scripts/run_local_benchmark.bash
  SHARDS=1 EVENTS_RATE=0 ASYNC=true EVENTS_TO_PUBLISH=2000000 bash scripts/run_local_benchmark.bash
  SHARDS=1 EVENTS_RATE=0 CALLERS=4 EVENTS_BATCH_SIZE=100 EVENTS_TO_PUBLISH=2000000 \\
    bash scripts/run_local_benchmark.bash
  MEMBERS=3 SHARDS=1 EVENTS_RATE=1000 EVENTS_TO_PUBLISH=5000 WARMUP_SECONDS=2 \\
    bash scripts/run_local_benchmark.bash
  KEYED=true EVENTS_RATE=1000 EVENTS_TO_PUBLISH=10000 WARMUP_SECONDS=1 bash scripts/run_local_benchmark.bash

Results: result.json, report.txt, report.html with plots (also as PNG), each runner's own result and the
logs, in RESULTS_DIR/<UTC time>/.
The last line printed is "Results: <path of result.json>".

Exit codes: 0 good; 1 an event was lost, duplicated, out of order, failed or late, or a step failed;
2 wrong input; 130 after Ctrl-C and 143 after SIGTERM (what was measured until then is written).
"""
