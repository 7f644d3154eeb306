"""The page of one run: report.html in its folder, its plots as PNGs, and its tables as CSV."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

import pandas as pd

from reports import facts, tables
from reports.page import Html, page, plot, section, tiles
from reports.page import facts as fact_table
from reports.result import Result
from reports.run_plots import PLOTS, SMOOTH_FROM, SMOOTH_SECONDS
from reports.style import milliseconds, short

CAPTIONS: Mapping[str, str] = {
    "rates": "Each second. What is offered follows the clock and never waits for answers.",
    "latency": "Each second. From the time at which an event was to be sent, so that waiting counts.",
    "percentiles": "Of all measured events: to the right, ever fewer are slower.",
    "resources": "Sampled each second.",
}


def write(folder: Path) -> Path:
    """Draws a run; returns its page. Raises NoReport where there is nothing to draw."""
    result = Result.read(folder)
    tables.write_missing(result)
    plots = []
    for name, title, draw in PLOTS:
        figure = draw(result)
        if figure is not None:
            plots.append(section(title, plot(folder, name, figure, caption(name, result))))
    title = result.title
    parts = [
        header(result, title),
        headline(result),
        *plots,
        *_tables(result),
    ]
    file = folder / "report.html"
    file.write_text(page(title, *parts))
    return file


def caption(name: str, result: Result) -> str:
    text = CAPTIONS.get(name, "")
    series = result.series if result.series is not None else result.resources
    if "second" in text and series is not None and len(series) >= SMOOTH_FROM:
        text += f" The strong lines are medians of {SMOOTH_SECONDS} seconds."
    return text


def header(result: Result, title: str) -> Html:
    state = "passed" if result.passed else "failed"
    shown = f"{state}, interrupted" if result.interrupted else state
    saturation = facts.saturation(result)
    problems = "".join(f"<li>{escape(problem)}</li>" for problem in result.problems)
    return Html(
        f'<p class="over">EventSQL benchmark, kind {escape(result.kind)}</p>\n<h1>{escape(title)}</h1>\n'
        f"<p>{escape(str(result.data.get('description') or ''))}</p>\n"
        f'<p><span class="badge {state}">{shown}</span> <span class="label">{escape(facts.label(result))}'
        f"</span></p>\n"
        + (f"<p>{escape(saturation)}</p>\n" if saturation else "")
        + (f'<ul class="problems">{problems}</ul>\n' if problems else "")
    )


def headline(result: Result) -> Html:
    """The most important numbers, of the fastest measured phase, or of the median trial."""
    if result.parts:
        return tiles({"parts": ", ".join(str(part["name"]) for part in result.parts)})
    if not result.measured:
        trials = result.trials
        if result.kind != "blast":
            return tiles({"trials": str(len(trials))})
        values = {
            "median events/s": _median(trials.get("throughput_events_per_second")),
            "median MB/s": _median(trials.get("bandwidth_mb_per_second")),
            "trials": str(len(trials)),
        }
        return tiles(values)
    phase = max(result.measured, key=lambda measured: measured.publish_rate or 0)
    end_to_end = phase.latency("end_to_end_latency_ms", "p99")
    publish = phase.latency("publish_latency_ms", "p99")
    return tiles(
        {
            "published": f"{short(phase.publish_rate)}/s" if phase.publish_rate is not None else None,
            "consumed": f"{short(phase.consume_rate)}/s" if phase.consume_rate is not None else None,
            "publish, p99": milliseconds(publish) if publish is not None else None,
            "publish to handler, p99": milliseconds(end_to_end) if end_to_end is not None else None,
            "of phase": phase.name if len(result.measured) > 1 else None,
        }
    )


def _median(values: object) -> str | None:
    return short(float(values.median())) if isinstance(values, pd.Series) else None


def _tables(result: Result) -> list[Html]:
    shown = []
    if result.measurements:
        shown.append(section("Numbers", facts.numbers(result), facts.latencies(result)))
    shown += [section(f"{part['name']}: {part['title']}", *facts.figures(part)) for part in result.parts]
    if not result.trials.empty:
        shown.append(section("Numbers", facts.trials([result])))
    if result.kind == "search":
        shown.append(section("Search", facts.search(result)))
    if result.data.get("stress"):
        shown.append(section("Stress", facts.stress(result)))
    shown += [
        section("Guarantees", facts.guarantees(result)),
        section("Machine and versions", facts.machine(result)),
        section("Settings", fact_table(result.settings)),
        section("Repeat", Html(f"<pre>{escape(result.command)}</pre>")),
    ]
    return shown
