"""Results of workloads as Markdown: a table per workload, with a row per run and measured phase."""

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.intervals import interval, ratios

TEXTS = ("what", "run", "settings", "phase", "system", "promises", "is acknowledged when", "passed")
# Omitted from a table if no run has them.
OPTIONAL = ("phase", "system", "promises", "call to answer p50 / p99", "schedule delay p99", "CPU cores")

ROUNDS = "Of several runs, in turns with the others: the median with its bootstrap 95 % interval."


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


def side_by_side(runs: Sequence[Run]) -> str:
    """A table for each machine: what each system reached, also in relation to the machine's limits."""
    machines: dict[str, list[Run]] = {}
    for run in runs:
        machines.setdefault(_hardware(run.result), []).append(run)
    return "\n\n".join(_side_by_side(of_machine) for of_machine in machines.values())


def _side_by_side(runs: Sequence[Run]) -> str:
    rounds: dict[str, list[Run]] = {}
    for run in runs:
        rounds.setdefault(run.name, []).append(run)
    rows = [_compared(name, of_name) for name, of_name in rounds.items()]
    parts = ["\n".join(markdown_table(list(dict.fromkeys(column for row in rows for column in row)), rows))]
    ratios_to_limits = [row for name, of_name in rounds.items() if (row := _of_limits(name, of_name, runs))]
    if ratios_to_limits:
        parts += [_limits(runs), "\n".join(markdown_table(list(ratios_to_limits[0]), ratios_to_limits))]
    return "\n\n".join(parts)


def _compared(name: str, runs: Sequence[Run]) -> dict[str, str]:
    """Guarantees, settings, rates and latencies of a system; medians if it was measured several times."""
    settings = runs[0].result["settings"]
    server_options = settings.get("environment", {}).get("server_options", {})
    options = {**server_options, **settings.get("driver_options", {})}
    row = {
        "run": name,
        "settings": ", ".join(f"`{option}={value}`" for option, value in options.items()) or "defaults",
        "is acknowledged when": str(runs[0].result["driver"]["durability"]),
    }
    for asked in _measured(runs[0]):
        phases = [_phase(run, asked["name"]) for run in runs]
        if asked.get("rate"):
            latencies = [phase["end_to_end_latency_ms"] for phase in phases]
            row[f"publish to handler at {asked['rate']:,.0f}/s, p50 / p99"] = (
                " / ".join(of_rounds([one[part] for one in latencies], ",.1f") for part in ("p50", "p99"))
                + " ms"
                if all(latencies)
                else ""
            )
        else:
            row[str(asked["name"])] = of_rounds([phase["publish_rate"] for phase in phases], ",.0f") + "/s"
    passed = {_passed(run) for run in runs}
    return {
        **row,
        "runs": str(len(runs)),
        "passed": passed.pop() if len(passed) == 1 else "**not all**",
    }


def of_rounds(values: Sequence[float], form: str) -> str:
    """The median, with its 95 % interval if there are several values."""
    if len(values) == 1:
        return format(values[0], form)
    found = interval(values)
    return f"{found.median:{form}} ({found.low:{form}}–{found.high:{form}})"


def _measured(run: Run) -> list[Mapping[str, Any]]:
    """The settings of the measured phases."""
    return [
        asked
        for asked in run.result["settings"]["phases"]
        if _phase(run, asked["name"]).get("measured", True)
    ]


def _phase(run: Run, name: str) -> Mapping[str, Any]:
    return next(phase for phase in run.result["phases"] if phase["name"] == name)


def _of_limits(name: str, runs: Sequence[Run], sitting: Sequence[Run]) -> dict[str, str]:
    """Ratios to plain programs and to the machine's limits; empty if those were not measured."""
    if not all(run.plain for run in runs):
        return {}
    row = {"run": name}
    copy = _limit(sitting, "copy_rows_per_second")
    for asked in _measured(runs[0]):
        phase = str(asked["name"])
        if asked.get("rate"):
            trips = [run.plain["limits"]["loopback_round_trip_micros"] / 1000 for run in runs]
            latencies = [_phase(run, phase)["end_to_end_latency_ms"] for run in runs]
            p50s = [one["p50"] for one in latencies if one]
            row[f"{phase}: p50 in loopback round trips"] = _ratio(trips, p50s, ",.0f") if p50s else ""
            continue
        rates = [_phase(run, phase)["publish_rate"] for run in runs]
        programs = [_program(run, phase) for run in runs]
        consumed = [_phase(run, phase)["consume_rate"] for run in runs]
        row[f"{phase}, of its plain program: published"] = (
            _ratio([one["publish_rate"] for one in programs], rates, ".2f") if all(programs) else ""
        )
        row[f"{phase}: consumed"] = (
            _ratio([one["consume_rate"] for one in programs], consumed, ".2f") if all(programs) else ""
        )
        fsyncs = [run.plain["limits"]["fsyncs_per_second"] for run in runs]
        row[f"{phase}: events per flush of the disk"] = _ratio(fsyncs, rates, ",.1f")
        row[f"{phase}: of a COPY"] = of_rounds([rate / copy for rate in rates], ".2f") if copy else ""
    return row


def _program(run: Run, phase: str) -> Mapping[str, Any]:
    return next((one for one in run.plain["programs"] if one["phase"] == phase), {})


def _ratio(of_a: Sequence[float], of_b: Sequence[float], form: str) -> str:
    found = ratios(of_a, of_b)
    if len(of_a) == 1:
        return f"{found.median:{form}}"
    return f"{found.median:{form}} ({found.low:{form}}–{found.high:{form}})"


def _limit(runs: Sequence[Run], name: str) -> float | None:
    """The median of a limit over all runs that have it."""
    values = [run.plain["limits"].get(name) for run in runs if run.plain]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _limits(runs: Sequence[Run]) -> str:
    """What the machine reached in the same sitting."""
    parts = [
        f"{value:,.0f} {unit}"
        for name, unit in (
            ("fsyncs_per_second", "flushes of 8 KiB/s"),
            ("loopback_round_trip_micros", "µs for a loopback round trip"),
            ("copy_rows_per_second", "rows/s by binary COPY over one connection"),
        )
        if (value := _limit(runs, name)) is not None
    ]
    return f"The machine itself, measured after each of these runs, medians: {'; '.join(parts)}."


def markdown_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
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


def _hardware(result: Mapping[str, Any]) -> str:
    system = result.get("machine", result)
    return f"{system['cpus']} CPUs, {system['os']}"


def _machine(result: Mapping[str, Any]) -> str:
    system = result.get("machine", result)
    parts = [_hardware(result), f"Java {system['java_version']}"]
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
        *markdown_table(columns, rows),
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
