"""The plots of a sweep: time by buffer size, nodes and the other factors, compared with COPY."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from reports.result import Result
from reports.style import (
    BLUE,
    LIMIT,
    SERIES,
    Colour,
    boxes,
    label_ends,
    logarithmic_latency,
    milliseconds,
    panels,
    short,
    size,
)

FACTORS = {
    "buffer_size_bytes": "buffer size",
    "node_count": "databases",
    "cluster_type": "replication",
    "buffer_type": "kind of publish call",
    "event_type": "kind of event",
}

REPLICATION = ["none", "asynchronous", "synchronous", "quorum"]


def all_trials(results: Sequence[Result]) -> pd.DataFrame:
    """The trials of all sweeps, grouped by equal settings."""
    frames = [result.trials for result in results if result.kind == "sweep" and not result.trials.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def by_factor(trials: pd.DataFrame, factor: str) -> pd.DataFrame:
    """The trials that differ in one factor only, for those other factors with the most values of it."""
    others = [name for name in FACTORS if name != factor]
    best = pd.DataFrame()
    for _, group in trials.groupby(others, sort=True):
        if best.empty or group[factor].nunique() > best[factor].nunique():
            best = group
    return best if not best.empty and best[factor].nunique() > 1 else pd.DataFrame()


def medians(trials: pd.DataFrame, factor: str) -> Figure | None:
    """Median and maximum by a factor, a line for each number of events."""
    chosen = by_factor(trials, factor)
    if chosen.empty:
        return None
    values = _values(chosen, factor)
    counts = sorted(chosen["event_count"].unique())
    figure, (axes,) = panels([3.2])
    places = list(range(len(values)))
    ends: list[tuple[float, str, Colour]] = []
    for index, count in enumerate(counts):
        of_count = chosen[chosen["event_count"] == count].groupby(factor)["duration_ms"]
        colour = SERIES[index % len(SERIES)]
        middle = [float(of_count.median().get(value, float("nan"))) for value in values]
        most = [float(of_count.max().get(value, float("nan"))) for value in values]
        axes.plot(places, middle, "-o", color=colour.light, markersize=5)
        axes.plot(places, most, ":^", color=colour.light, markersize=4, linewidth=1.2)
        ends.append((middle[-1], f"{short(count)} event{'' if count == 1 else 's'}", colour))
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.set_xticks(places, [_name(factor, value) for value in values])
    axes.set_xlim(-0.25, len(places) - 0.85)
    axes.set_xlabel(FACTORS[factor])
    logarithmic_latency(axes, f"Time by {FACTORS[factor]}: median (line) and maximum (dotted)")
    figure.draw_without_rendering()
    label_ends(axes, ends)
    return figure


def spread_of_trials(trials: pd.DataFrame, factor: str) -> Figure | None:
    """Distribution of the trials with the most events, by a factor."""
    chosen = by_factor(trials, factor)
    if chosen.empty:
        return None
    count = chosen["event_count"].max()
    most = chosen[chosen["event_count"] == count]
    values = _values(most, factor)
    figure, (axes,) = panels([max(1.2, 0.42 * len(values) + 0.4)])
    axes.boxplot(
        [most[most[factor] == value]["duration_ms"] for value in values],
        positions=range(len(values)),
        **boxes(BLUE),
    )
    names = [_name(factor, value) for value in values]
    axes.set_yticks(range(len(values)), names)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_ylabel(FACTORS[factor])
    axes.set_xlim(left=0)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(milliseconds))
    axes.set_title(f"Time for {short(count)} events: every trial's box by {FACTORS[factor]}")
    return figure


def ingest(results: Sequence[Result]) -> Figure | None:
    """Time to ingest the most events in each run, and the time of a plain COPY of the same number."""
    sweeps = [result for result in results if result.kind == "sweep" and not result.trials.empty]
    if not sweeps:
        return None
    count = max(int(result.trials["event_count"].max()) for result in sweeps)
    times = {
        result.name: float(chosen["duration_ms"].median())
        for result in sweeps
        if not (chosen := result.trials[result.trials["event_count"] == count]).empty
    }
    limits = {
        result.name: float(limit["duration_ms"])
        for result in sweeps
        if (limit := result.data.get("copy_limit")) and limit["events"] == count
    }
    figure, (axes,) = panels([max(1.0, 0.36 * len(times) + 0.4)])
    for place, (name, time) in enumerate(times.items()):
        axes.barh(place, time, height=0.62, color=BLUE.light)
        limit = limits.get(name, 0.0)
        if limit:
            axes.vlines(limit, place - 0.42, place + 0.42, color=LIMIT.light, linewidth=2.5)
        axes.annotate(
            f"{milliseconds(time)}, {short(count / time * 1000)}/s",
            xy=(max(time, limit), place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
        )
    if limits:
        axes.annotate(
            "upright line: plain COPY over one connection, in the same run",
            xy=(0, 0),
            xycoords="axes fraction",
            xytext=(4, 3),
            textcoords="offset points",
            color=LIMIT.light,
            va="bottom",
        )
    axes.set_yticks(range(len(times)), list(times))
    axes.set_ylim(len(times) - 0.1 if limits else len(times) - 0.5, -0.6)
    axes.set_xlim(0, max(times.values()) * 1.3)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(milliseconds))
    axes.set_title(f"Time to ingest {count:,} events, median of the trials")
    return figure


def _values(trials: pd.DataFrame, factor: str) -> list[Any]:
    """All values of a factor: replication from none to quorum, the others in ascending order."""
    return sorted(trials[factor].unique(), key=lambda v: REPLICATION.index(v) if v in REPLICATION else v)


def _name(factor: str, value: Any) -> str:  # noqa: ANN401  # a cell of a table
    if factor == "buffer_size_bytes":
        return size(float(value))
    return str(value)
