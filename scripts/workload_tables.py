"""Results of workloads as Markdown: per workload and machine a table, with a row per run and phase."""

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.intervals import interval

TEXTS = (
    "what",
    "command",
    "run",
    "settings",
    "phase",
    "query",
    "system",
    "promises",
    "is acknowledged when",
    "passed",
)
# Omitted from a table if no run has them.
OPTIONAL = (
    *("phase", "system", "promises", "call to answer p50 / p99", "schedule delay p99", "CPU cores"),
    *("p50 to handler in loopback round trips", "of a COPY", "of Flink's Kafka source"),
)


@dataclass(frozen=True)
class Run:
    """A result and its folder."""

    folder: Path
    result: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kind(self) -> str:
        return str(self.result["kind"])

    @property
    def plain(self) -> Mapping[str, Any]:
        """What plain programs and the machine reached on its servers; empty if that was not measured."""
        file = self.folder / "plain.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}


def tables(runs: Sequence[Run], link: Callable[[Path], str]) -> str:
    """All tables; `link` returns the path of a run's folder relative to the text."""
    workloads: dict[str, list[Run]] = {}
    for run in runs:
        workloads.setdefault(str(run.result["workload"]), []).append(run)
    return "\n\n".join(_section(name, of_workload, link) for name, of_workload in workloads.items())


def by_machine(runs: Sequence[Run]) -> list[list[Run]]:
    """Rows of different machines never share a table."""
    machines: dict[str, list[Run]] = {}
    for run in runs:
        machines.setdefault(hardware(run.result), []).append(run)
    return list(machines.values())


def by_name(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The rounds of each run."""
    rounds: dict[str, list[Run]] = {}
    for run in runs:
        rounds.setdefault(run.name, []).append(run)
    return rounds


def repetitions(count: int) -> str:
    return "one run" if count == 1 else str(count)


def options(run: Run) -> str:
    """What differs from the defaults of a system and its server."""
    settings = run.result["settings"]
    server_options = settings.get("environment", {}).get("server_options", {})
    chosen = {**server_options, **settings.get("driver_options", {})}
    return ", ".join(f"`{option}={value}`" for option, value in chosen.items()) or "defaults"


def all_passed(runs: Sequence[Run]) -> str:
    passed = {_passed(run) for run in runs}
    return passed.pop() if len(passed) == 1 else "**not all**"


def of_rounds(values: Sequence[float], form: str) -> str:
    """The median, with its 95 % interval if there are several values."""
    if len(values) == 1:
        return format(values[0], form)
    found = interval(values)
    return f"{found.median:{form}} ({found.low:{form}}–{found.high:{form}})"


def measured(run: Run) -> list[Mapping[str, Any]]:
    """The settings of the measured phases; fewer than asked for if the run was interrupted."""
    return [
        asked
        for asked in run.result["settings"]["phases"]
        if (phase := phase_of(run, asked["name"])) and phase.get("measured", True)
    ]


def phase_of(run: Run, name: str) -> Mapping[str, Any]:
    """Returns the phase; empty if the run was interrupted before it."""
    return next((phase for phase in run.result["phases"] if phase["name"] == name), {})


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Columns without text are right-aligned, and optional ones that no row has are omitted."""
    columns = [
        column
        for column in dict.fromkeys(column for row in rows for column in row)
        if column not in OPTIONAL or any(row.get(column) for row in rows)
    ]
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('---' if column in TEXTS else '---:' for column in columns)}|",
        *(f"| {' | '.join(row.get(column) or '' for column in columns)} |" for row in rows),
    ]
    return "\n".join(lines)


def machine(runs: Sequence[Run]) -> str:
    """Machines, versions and commits of the results."""
    machines = dict.fromkeys(_machine(run.result) for run in runs)
    return f"{'; '.join(machines)}; {commits(runs)}."


def commits(runs: Sequence[Run]) -> str:
    return f"commit {', '.join(dict.fromkeys(str(run.result['git_commit'])[:8] for run in runs))}"


def hardware(result: Mapping[str, Any]) -> str:
    system = result.get("machine", result)
    return f"{system['cpus']} CPUs, {system['os']}"


def _machine(result: Mapping[str, Any]) -> str:
    system = result.get("machine", result)
    parts = [hardware(result), f"Java {system['java_version']}"]
    if "databases" in result:
        databases = result["databases"]
    else:
        databases = [{**result, "version": result["postgres_version"]}]
    parts += dict.fromkeys(
        f"PostgreSQL {database['version']} with `fsync={database['fsync']}`,"
        f" `synchronous_commit={database['synchronous_commit']}`"
        for database in databases
    )
    return ", ".join(parts)


def _section(workload: str, runs: Sequence[Run], link: Callable[[Path], str]) -> str:
    description = str(runs[0].result.get("description") or "")
    parts = ["\n".join([f"### {workload}", *([description] if description else [])])]
    machines = by_machine(runs)
    for of_machine in machines:
        if len(machines) > 1:
            parts.append(f"On {hardware(of_machine[0].result)}:")
        rows = [
            {"run": f"[{_round(run)}]({link(run.folder)})", **row, "runs": "one run", "passed": _passed(run)}
            for run in of_machine
            for row in ROWS.get(run.kind, _phases)(run)
        ]
        parts += [markdown_table(rows), *_stress(of_machine)]
    return "\n\n".join(parts)


def _round(run: Run) -> str:
    """The name of a run, with its round if there are several."""
    place = run.folder.parent.name
    return f"{run.name}, {place.replace('-', ' ')}" if place.startswith("round-") else run.name


def _stress(runs: Sequence[Run]) -> list[str]:
    """A table of the behaviour under overload; nothing without such a run."""
    lines = []
    for run in runs:
        stress = run.result.get("stress")
        if stress:
            memory = ", ".join(
                f"{name} {part['start']:,.0f} / {part['end']:,.0f} MB"
                for name, part in stress["resident_mb"].items()
                if part["start"] is not None and part["end"] is not None
            )
            recovery = stress.get("recovery_seconds")
            recovered = "not within what was measured" if recovery is None else f"{recovery} s"
            lines.append(
                f"| {_round(run)} | {stress['accepted_of_maximum']:.0%} | {stress['missed_share']:.0%}"
                f" | {memory} | {recovered} |"
            )
    if not lines:
        return []
    head = [
        "| overload of | accepted, of maximum | slots missed | resident at start / end | recovered after |",
        "|---|---:|---:|---|---:|",
    ]
    return ["\n".join([*head, *lines])]


def _passed(run: Run) -> str:
    if run.result.get("interrupted"):
        return "interrupted"
    return "yes" if run.result["passed"] else "**no**"


def _phases(run: Run) -> list[dict[str, str]]:
    """A row for each measured phase; the main job has one."""
    if run.kind == "publish":
        phases = [run.result]
    else:
        phases = [phase for phase in run.result.get("phases", []) if phase.get("measured", True)]
    driver = run.result.get("driver") or {}
    promises = "; ".join(filter(None, (driver.get(name) for name in ("durability", "order", "delivery"))))
    return [
        {
            "phase": str(phase["name"]) if len(phases) > 1 else "",
            "system": str(driver.get("name") or ""),
            "promises": promises if number == 0 else "",
            "published": _rate(phase.get("publish_rate")),
            "consumed": _rate(phase.get("consume_rate")) if phase.get("end_to_end_latency_ms") else "",
            "publish p50 / p99": _latency(phase.get("publish_latency_ms")),
            "call to answer p50 / p99": _latency(phase.get("service_latency_ms")),
            "schedule delay p99": _delay(run, phase),
            "publish to handler p50 / p99": _latency(phase.get("end_to_end_latency_ms")),
            "CPU cores": _cores(run, str(phase.get("name") or "measured")),
            "lost / twice / out of order": _checks(run),
            **_of_limits(run, phase),
        }
        for number, phase in enumerate(phases)
    ]


def _of_limits(run: Run, phase: Mapping[str, Any]) -> dict[str, str]:
    """Ratios to the machine's limits; empty if those were not measured."""
    limits = run.plain.get("limits")
    if not limits:
        return {}
    latency = phase.get("end_to_end_latency_ms")
    copy = limits.get("copy_rows_per_second")
    return {
        "p50 to handler in loopback round trips": (
            f"{1000 * latency['p50'] / limits['loopback_round_trip_micros']:,.0f}" if latency else ""
        ),
        "events per flush of the disk": f"{phase['publish_rate'] / limits['fsyncs_per_second']:,.1f}",
        "of a COPY": f"{phase['publish_rate'] / copy:.2f}" if copy else "",
    }


def _delay(run: Run, phase: Mapping[str, Any]) -> str:
    """The schedule delay of calls that have a schedule."""
    delay = phase.get("schedule_delay_ms")
    is_closed = run.kind == "publish" and not phase.get("rate_asked")
    return f"{delay['p99']:,.2f} ms" if delay and not is_closed else ""


def _cores(run: Run, phase: str) -> str:
    """Mean CPU usage per kind of process in the phase's seconds, added up within a kind."""
    series = run.result.get("series") or {}
    seconds = [
        t for t, name in zip(series.get("t", []), series.get("phase", []), strict=True) if name == phase
    ]
    used: dict[str, float] = {}
    for column, values in ((run.result.get("resources") or {}).get("columns") or {}).items():
        name, _, what = column.rpartition(".")
        known = [values[t] for t in seconds if t < len(values) and values[t] is not None]
        if what == "cpu_cores" and known:
            kind = re.sub(r"-\d+$", "", name)
            used[kind] = used.get(kind, 0) + statistics.mean(known)
    return ", ".join(f"{kind} {cores:.2f}" for kind, cores in sorted(used.items()))


def _checks(run: Run) -> str:
    consumers = [run.result] if run.kind == "publish" else run.result.get("consumers") or []
    if not consumers:
        return "not checked"
    names = ("events_lost", "events_duplicated", "order_violations")
    return " / ".join(f"{sum(int(consumer[name]) for consumer in consumers):,}" for name in names)


def _search(run: Run) -> list[dict[str, str]]:
    found = run.result.get("search")
    if not found:
        return [{"highest rate": ""}]
    asked = run.result["settings"]["search"]
    return [
        {
            "limit": f"p{asked['percentile']:g} of {asked['latency']} {asked['limit_ms']:g} ms",
            "highest rate": _rate(found["best_rate"]) if found["best_rate"] else "none",
            "rates tried": f"{len(found['trials']):,}",
        }
    ]


def _blast(run: Run) -> list[dict[str, str]]:
    trials = run.result["trials"]
    if not trials:
        return [{"trials": "0"}]

    def median(column: str) -> float:
        return float(statistics.median(trial[column] for trial in trials))

    return [
        {
            "trials": f"{len(trials):,}",
            "failures": f"{sum(trial['failures'] for trial in trials):,}",
            "median throughput": _rate(median("throughput_events_per_second")),
            "median bandwidth": f"{median('bandwidth_mb_per_second'):,.1f} MB/s",
            "median of mean latencies": f"{median('latency_mean_ms'):,.1f} ms",
        }
    ]


def _sweep(run: Run) -> list[dict[str, str]]:
    """A row for each number of events."""
    times: dict[int, list[float]] = {}
    for trial in run.result["trials"]:
        times.setdefault(int(trial["event_count"]), []).append(float(trial["duration_ms"]))
    limit = run.result.get("copy_limit") or {}
    rows = []
    for count, durations in sorted(times.items()):
        median = statistics.median(durations)
        of_copy = f"{limit['duration_ms'] / median:.0%}" if limit.get("events") == count else ""
        rows.append(
            {
                "events": f"{count:,}",
                "trials": f"{len(durations):,}",
                "median": f"{median:,.1f} ms",
                "maximum": f"{max(durations):,.1f} ms",
                "median rate": _rate(count / median * 1000),
                "of a plain COPY over one connection": of_copy,
            }
        )
    return rows


def _queries(run: Run) -> list[dict[str, str]]:
    """A row for each way to read the stream; a query's has its latency, too."""
    parts = {part["name"]: part for part in run.result["parts"]}

    def rows(part: str, table: str) -> dict[str, Mapping[str, Any]]:
        tables = parts.get(part, {}).get("tables", [])
        return {row["name"]: row["figures"] for one in tables if one["name"] == table for row in one["rows"]}

    latencies = rows("latency", "query")
    at = rows("latency", "").get("published", {}).get("value", {}).get("value", 0)
    shown = []
    for way, figures in rows("throughput", "way").items():
        latency = latencies.get(way, {})
        shown.append(
            {
                "query": way,
                "read": f"{_figure(figures.get('events_per_second'), ',.0f')}/s",
                "of the consumer": _figure(figures.get("vs consumer"), ".2f"),
                "of Flink's Kafka source": _figure(figures.get("vs Kafka source"), ".2f"),
                f"age of results at {at:,.0f}/s, p50 / p99": (
                    f"{latency['p50_ms']['value']:,.0f} / {latency['p99_ms']['value']:,.0f} ms"
                    if latency
                    else ""
                ),
            }
        )
    return shown


def _figure(figure: Mapping[str, Any] | None, form: str) -> str:
    """The median with the lowest and the highest of the rounds; empty without a figure."""
    if figure is None:
        return ""
    rounds = figure.get("rounds") or [figure["value"]]
    text = format(figure["value"], form)
    return text if len(rounds) == 1 else f"{text} ({min(rounds):{form}}–{max(rounds):{form}})"


def _rate(rate: float | None) -> str:
    return f"{rate:,.0f}/s" if rate is not None else ""


def _latency(percentiles: Mapping[str, float] | None) -> str:
    return f"{percentiles['p50']:,.1f} / {percentiles['p99']:,.1f} ms" if percentiles else ""


ROWS: Mapping[str, Callable[[Run], list[dict[str, str]]]] = {
    "blast": _blast,
    "queries": _queries,
    "search": _search,
    "sweep": _sweep,
}
