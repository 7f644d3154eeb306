"""Results of workloads as Markdown: a table per workload, with a row per run and measured phase."""

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = ("run", "phase", "system", "promises", "is acknowledged when", "passed")
# Omitted from a table if no run has them.
OPTIONAL = ("phase", "system", "promises", "call to answer p50 / p99", "schedule delay p99", "CPU cores")


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


def tables(runs: Sequence[Run], link: Callable[[Path], str]) -> str:
    """All tables; `link` returns the path of a run's folder relative to the text."""
    workloads: dict[str, list[Run]] = {}
    for run in runs:
        workloads.setdefault(str(run.result["workload"]), []).append(run)
    return "\n\n".join(_section(name, of_workload, link) for name, of_workload in workloads.items())


def side_by_side(runs: Sequence[Run]) -> str:
    """A row for each run: its guarantees, publish rates, and latencies to the handler."""
    rows = []
    for run in runs:
        driver = run.result["driver"]
        row = {"run": run.name, "is acknowledged when": str(driver["durability"])}
        for asked, phase in zip(run.result["settings"]["phases"], run.result["phases"], strict=True):
            if not phase.get("measured", True):
                continue
            if asked.get("rate"):
                name = f"publish to handler at {asked['rate']:,.0f}/s, p50 / p99"
                row[name] = _latency(phase["end_to_end_latency_ms"])
            else:
                row[str(phase["name"])] = _rate(phase["publish_rate"])
        rows.append({**row, "passed": _passed(run)})
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return "\n".join(_table(columns, rows))


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Lines of Markdown; columns without text are right-aligned."""
    return [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join('---' if column in TEXTS else '---:' for column in columns)}|",
        *(f"| {' | '.join(row.get(column) or '' for column in columns)} |" for row in rows),
    ]


def machine(runs: Sequence[Run]) -> str:
    """Machines, versions and commits of the results."""
    machines = dict.fromkeys(_machine(run.result) for run in runs)
    commits = ", ".join(dict.fromkeys(str(run.result["git_commit"])[:8] for run in runs))
    return f"{'; '.join(machines)}; commit {commits}."


def _machine(result: Mapping[str, Any]) -> str:
    system = result.get("machine", result)
    parts = [f"{system['cpus']} CPUs", str(system["os"]), f"Java {system['java_version']}"]
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
    rows = [
        {"run": f"[{run.name}]({link(run.folder)})", **row, "passed": _passed(run)}
        for run in runs
        for row in ROWS.get(run.kind, _phases)(run)
    ]
    columns = [
        column
        for column in dict.fromkeys(column for row in rows for column in row)
        if column not in OPTIONAL or any(row.get(column) for row in rows)
    ]
    description = str(runs[0].result.get("description") or "")
    lines = [
        f"### {workload}",
        *([description] if description else []),
        "",
        *_table(columns, rows),
        *_stress(runs),
    ]
    return "\n".join(lines)


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
                f"| {run.name} | {stress['accepted_of_maximum']:.0%} | {stress['missed_share']:.0%}"
                f" | {memory} | {recovered} |"
            )
    if not lines:
        return []
    return [
        "",
        "| overload of | accepted, of maximum | slots missed | resident at start / end | recovered after |",
        "|---|---:|---:|---|---:|",
        *lines,
    ]


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
        }
        for number, phase in enumerate(phases)
    ]


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


def _rate(rate: float | None) -> str:
    return f"{rate:,.0f}/s" if rate is not None else ""


def _latency(percentiles: Mapping[str, float] | None) -> str:
    return f"{percentiles['p50']:,.1f} / {percentiles['p99']:,.1f} ms" if percentiles else ""


ROWS: Mapping[str, Callable[[Run], list[dict[str, str]]]] = {
    "blast": _blast,
    "search": _search,
    "sweep": _sweep,
}
