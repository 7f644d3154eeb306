"""Runs with a phase next to an old snapshot as Markdown: what each system made of it, also after it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workload_tables import (
    Run,
    all_passed,
    by_machine,
    by_name,
    hardware,
    markdown_table,
    measured,
    of_rounds,
    options,
    phase_of,
    repetitions,
)

# What a system should reach.
CONSUMED_SHARE_MIN = 0.995
P99_RATIO_MAX = 1.25


def held_snapshots(runs: Sequence[Run]) -> str:
    """A table for each machine, with a row for each system and length; empty without such a run."""
    chosen = [run for run in runs if _held(run) and len(_names(run)) > 1]
    return "\n\n".join(
        f"Next to an old snapshot, on {hardware(of_machine[0].result)}"
        f" (bold: consumed below {CONSUMED_SHARE_MIN:.1%}, p99 above {P99_RATIO_MAX} times that of"
        f" {_names(of_machine[0])[0]}, or events left at the end):\n\n"
        + markdown_table([_row(name, rounds) for name, rounds in _rounds(of_machine)])
        for of_machine in by_machine(chosen)
    )


def _rounds(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """Those of each system and length of the schedule, the longest first."""
    lengths = sorted({_length(run) for run in runs}, reverse=True)
    return [
        rounds
        for length in lengths
        for rounds in by_name([run for run in runs if _length(run) == length]).items()
    ]


def _length(run: Run) -> float:
    return float(sum(phase["seconds"] for phase in _asked(run)))


def _row(name: str, runs: Sequence[Run]) -> dict[str, str]:
    names = _names(runs[0])
    first, held = names[0], _held(runs[0])[0]
    p99s = {phase: [_p99(run, phase) for run in runs] for phase in names}
    row = {"run": name, "settings": options(runs[0]), "seconds": _seconds(runs[0])}
    shares = [_consumed_share(run, held) for run in runs]
    row[f"consumed while {held}"] = _marked(shares, ".2%", lambda share: share < CONSUMED_SHARE_MIN)
    row[f"p99 publish to handler, {' / '.join(names)}"] = (
        " / ".join(of_rounds(p99s[phase], ",.1f") for phase in names) + " ms"
    )
    for phase in names[1:]:
        ratios = [p99 / before for p99, before in zip(p99s[phase], p99s[first], strict=True)]
        row[f"{phase} / {first}"] = _marked(ratios, ",.2f", lambda ratio: ratio > P99_RATIO_MAX)
    for what, column, form in (
        ("backlog", "lag", ",.0f"),
        ("dead rows", "shard0.dead_tuples", ",.0f"),
        ("database MB", "shard0.database_mb", ",.0f"),
    ):
        row[f"{what} at their ends"] = " / ".join(
            of_rounds([_at_end(run, phase, column) for run in runs], form) for phase in names
        )
    left = [float(sum(consumer["events_lost"] for consumer in run.result["consumers"])) for run in runs]
    row["left at the end"] = _marked(left, ",.0f", lambda events: events > 0)
    return {**row, "runs": repetitions(len(runs)), "passed": all_passed(runs)}


def _held(run: Run) -> list[str]:
    asked = run.result["settings"].get("phases", [])
    return [str(phase["name"]) for phase in asked if phase.get("held_snapshot")]


def _names(run: Run) -> list[str]:
    """The measured phases; fewer than asked for if the run was interrupted."""
    played = {phase["name"] for phase in run.result["phases"] if phase["measured"]}
    names = [str(phase["name"]) for phase in run.result["settings"]["phases"] if phase["name"] in played]
    return names if set(_held(run)) <= played else []


def _seconds(run: Run) -> str:
    asked = _asked(run)
    seconds = " / ".join(f"{phase['seconds']:,}" for phase in asked)
    full = " / ".join(f"{phase.get('full_seconds') or phase['seconds']:,}" for phase in asked)
    return seconds if seconds == full else f"{seconds} instead of {full}"


def _asked(run: Run) -> list[Mapping[str, Any]]:
    """The settings of the phases that were measured to their end."""
    return [phase for phase in measured(run) if phase["name"] in _names(run)]


def _marked(values: Sequence[float], form: str, is_missed: Callable[[float], bool]) -> str:
    """The median; bold if any of the values misses what it should reach."""
    text = of_rounds(values, form)
    return f"**{text}**" if any(is_missed(value) for value in values) else text


def _p99(run: Run, phase: str) -> float:
    return float(phase_of(run, phase)["end_to_end_latency_ms"]["p99"])


def _consumed_share(run: Run, phase: str) -> float:
    """Deliveries during the phase, of the events acknowledged during it."""
    series = run.result["series"]
    published = sum(_values(series, phase, "publish_rate"))
    deliveries = sum(_values(series, phase, "consume_rate"))
    return deliveries / (published * int(run.result["settings"]["consumers"]))


def _at_end(run: Run, phase: str, column: str) -> float:
    """The last known value of the phase; resources of a process or database have a longer series each."""
    known = _values(run.result["series"], phase, column) or _values(
        {**run.result["resources"]["columns"], "phase": run.result["series"]["phase"]}, phase, column
    )
    return known[-1] if known else float("nan")


def _values(columns: Mapping[str, Sequence[Any]], phase: str, column: str) -> list[float]:
    of_seconds = zip(columns["phase"], columns.get(column, []), strict=False)
    return [float(value) for name, value in of_seconds if name == phase and value is not None]
