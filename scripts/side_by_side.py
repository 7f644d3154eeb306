"""Systems side by side as Markdown: what each reached, also in relation to plain programs and the machine."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.intervals import ratios
from workload_tables import (
    Run,
    all_passed,
    by_machine,
    by_name,
    markdown_table,
    measured,
    of_rounds,
    options,
    phase_of,
    repetitions,
)

NO_OP = "no-op"
# What a tuned system should reach of its plain client program.
PLAIN_SHARE_MIN = 0.8


def side_by_side(runs: Sequence[Run]) -> str:
    """A table for each machine: what each system reached, also in relation to the machine's limits."""
    return "\n\n".join(_side_by_side(of_machine) for of_machine in by_machine(runs))


def tuned(runs: Sequence[Run]) -> str:
    """A short table for each machine: the rates of each system with its best settings."""
    return "\n\n".join(
        markdown_table(
            [
                _short(name, of_name)
                for name, of_name in by_name(of_machine).items()
                if not name.endswith("-default") and of_name[0].result["driver"]["name"] != NO_OP
            ]
        )
        for of_machine in by_machine(runs)
    )


def _short(name: str, runs: Sequence[Run]) -> dict[str, str]:
    compared = _compared(name, runs)
    if compared["passed"] != "yes":
        raise ValueError(f"{name} did not pass: {', '.join(str(run.folder) for run in runs)}")
    phases = [str(asked["name"]) for asked in measured(runs[0]) if not asked.get("rate")]
    return {"run": name.removesuffix("-tuned"), **{phase: compared[phase] for phase in phases}}


def _side_by_side(runs: Sequence[Run]) -> str:
    rounds = by_name(runs)
    rows = [_compared(name, of_name) for name, of_name in rounds.items()]
    parts = [markdown_table(rows)]
    ratios_to_limits = [row for name, of_name in rounds.items() if (row := _of_limits(name, of_name, runs))]
    if ratios_to_limits:
        parts += [_limits(runs), markdown_table(ratios_to_limits)]
        if any("**" in cell for row in ratios_to_limits for cell in row.values()):
            parts.append(f"Bold: tuned, but below {PLAIN_SHARE_MIN:.0%} of its plain program.")
    return "\n\n".join(parts)


def _compared(name: str, runs: Sequence[Run]) -> dict[str, str]:
    """Guarantees, settings, rates and latencies of a system; medians if it was measured several times."""
    row = {
        "run": name,
        "settings": options(runs[0]),
        "is acknowledged when": str(runs[0].result["driver"]["durability"]),
    }
    for asked in measured(runs[0]):
        phases = [phase_of(run, asked["name"]) for run in runs]
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
    return {**row, "runs": repetitions(len(runs)), "passed": all_passed(runs)}


def _of_limits(name: str, runs: Sequence[Run], sitting: Sequence[Run]) -> dict[str, str]:
    """Ratios to plain programs and to the machine's limits; empty if those were not measured."""
    if not all(run.plain for run in runs):
        return {}
    row = {"run": name}
    copy = _limit(sitting, "copy_rows_per_second")
    for asked in measured(runs[0]):
        phase = str(asked["name"])
        if asked.get("rate"):
            trips = [run.plain["limits"]["loopback_round_trip_micros"] / 1000 for run in runs]
            latencies = [phase_of(run, phase)["end_to_end_latency_ms"] for run in runs]
            p50s = [one["p50"] for one in latencies if one]
            row[f"{phase}: p50 in loopback round trips"] = _ratio(trips, p50s, ",.0f") if p50s else ""
            continue
        rates = [phase_of(run, phase)["publish_rate"] for run in runs]
        programs = [_program(run, phase) for run in runs]
        consumed = [phase_of(run, phase)["consume_rate"] for run in runs]
        row[f"{phase}, of its plain program: published"] = _of_plain(runs, programs, "publish_rate", rates)
        row[f"{phase}: consumed"] = _of_plain(runs, programs, "consume_rate", consumed)
        fsyncs = [run.plain["limits"]["fsyncs_per_second"] for run in runs]
        row[f"{phase}: events per flush of the disk"] = _ratio(fsyncs, rates, ",.1f")
        row[f"{phase}: of a COPY"] = of_rounds([rate / copy for rate in rates], ".2f") if copy else ""
    return row


def _of_plain(
    runs: Sequence[Run], programs: Sequence[Mapping[str, Any]], figure: str, reached: Sequence[float]
) -> str:
    """The share of a plain program; bold if a tuned system misses what it should reach."""
    if not all(programs):
        return ""
    of_program = [one[figure] for one in programs]
    share = _ratio(of_program, reached, ".2f")
    is_tuned = bool(runs[0].result["settings"].get("driver_options"))
    missed = is_tuned and ratios(of_program, reached).median < PLAIN_SHARE_MIN
    return f"**{share}**" if missed else share


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
