"""The page that compares runs: comparison.html and its plots as PNGs."""

import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from reports import comparison_plots, facts, sweep_plots
from reports.page import Html, page, plot, section, table
from reports.result import Result


def write(runs: Sequence[Path], out: Path) -> Path:
    """Compares runs; returns the page, in the folder `out`."""
    results = [Result.read(run) for run in runs]
    if all(result.data.get("started_at") for result in results):
        # In the order of measurement, which is that of the workload's file.
        results.sort(key=lambda result: str(result.data["started_at"]))
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.workload or "", []).append(result)
    title = f"{next(iter(groups))}: {len(results)} runs" if len(groups) == 1 else f"{len(results)} runs"
    title = title.removeprefix(": ")
    out = out.resolve()
    parts = [_header(results, title)]
    for workload, group in groups.items():
        prefix = f"comparison-{workload}-" if workload and len(groups) > 1 else "comparison-"
        drawn = [plot(out, f"{prefix}{name}", figure) for name, figure in _figures(group)]
        if drawn:
            description = escape(str(group[0].data.get("description") or "")) if workload else ""
            parts.append(section(workload or "Side by side", Html(f"<p>{description}</p>"), *drawn))
    # Rows of different machines never share a table.
    machines: dict[str, list[Result]] = {}
    for result in results:
        machines.setdefault(facts.hardware(result), []).append(result)
    for machine, group in machines.items():
        on = f", {machine}" if len(machines) > 1 else ""
        trials = [result for result in group if not result.trials.empty]
        if trials:
            parts.append(section(f"Trials{on}", facts.trials(trials)))
        parts.append(section(f"Numbers and guarantees{on}", _table(group, out)))
    parts.append(section("Machine and versions", _machines(results)))
    commands = "\n".join(dict.fromkeys(result.command for result in results if result.command))
    parts.append(section("Repeat", Html(f"<pre>{escape(commands)}</pre>")))
    file = out / "comparison.html"
    file.write_text(page(title, *parts))
    return file


def _figures(results: Sequence[Result]) -> Iterator[tuple[str, Figure]]:
    trials = sweep_plots.all_trials(results)
    by_value = comparison_plots.latency_by_value(results)
    figures = [
        ("throughput", comparison_plots.throughput(results)),
        ("latency", by_value or comparison_plots.latency_ranges(results, "publish_latency_ms")),
        (
            "end-to-end",
            None if by_value else comparison_plots.latency_ranges(results, "end_to_end_latency_ms"),
        ),
        ("blast", comparison_plots.blast(results)),
        ("ingest", sweep_plots.ingest(results)),
    ]
    if not trials.empty:
        for factor in sweep_plots.FACTORS:
            name = factor.replace("_", "-")
            figures.append((f"by-{name}", sweep_plots.medians(trials, factor)))
            figures.append((f"boxes-{name}", sweep_plots.spread_of_trials(trials, factor)))
    return ((name, figure) for name, figure in figures if figure is not None)


def _header(results: Sequence[Result], title: str) -> Html:
    labels = dict.fromkeys(facts.label(result) for result in results)
    failed = [result.name for result in results if not result.passed]
    state = f"{len(results)} passed" if not failed else f"failed: {', '.join(failed)}"
    lines = "".join(f'<p class="label">{escape(label)}</p>\n' for label in labels)
    return Html(
        f'<p class="over">EventSQL benchmark, comparison</p>\n<h1>{escape(title)}</h1>\n'
        f'<p><span class="badge {"failed" if failed else "passed"}">{escape(state)}</span></p>\n{lines}'
    )


def _table(results: Sequence[Result], out: Path) -> Html:
    """A row for each measured phase, with the guarantees of the system next to its numbers."""
    columns = [
        *("run", "phase", "system", "durability", "order", "delivery", "published/s", "consumed/s"),
        *(
            "publish p50 ms",
            "p99 ms",
            "to handler p50 ms",
            "p99 ms",
            "lost / duplicated / out of order",
            "runs",
        ),
    ]
    rows: list[Sequence[object]] = []
    for result in results:
        driver = result.data.get("driver") or {}
        checks = " / ".join(f"{count:,}" for count in result.checks.values())
        has_consumers = bool(result.data.get("consumers", result.kind == "publish"))
        several = len(result.measured) > 1
        for shown in result.measured or [result.median_trial]:
            rows.append(
                [
                    _link(result, out),
                    shown.name if several else None,
                    driver.get("name"),
                    driver.get("durability") or (facts.durability(result) if result.databases else None),
                    *(driver.get(name) for name in ("order", "delivery")),
                    *(shown.publish_rate, shown.consume_rate),
                    *(shown.latency("publish_latency_ms", p) for p in ("p50", "p99")),
                    *(shown.latency("end_to_end_latency_ms", p) for p in ("p50", "p99")),
                    checks if has_consumers else "not checked",
                    "one run",
                ]
            )
    return table(columns, rows)


def _link(result: Result, out: Path) -> Html:
    name = escape(result.title)
    report = result.folder / "report.html"
    if not report.exists():
        return Html(name)
    return Html(f'<a href="{escape(os.path.relpath(report, out))}">{name}</a>')


def _machines(results: Sequence[Result]) -> Html:
    """Each different machine once."""
    return Html("".join(dict.fromkeys(facts.machine_of_several(result) for result in results)))
