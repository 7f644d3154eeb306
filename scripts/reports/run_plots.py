"""The plots of one run. Each function returns None for a run without the data it draws."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from reports import trial_plots
from reports.histograms import FIRST_NINE, spectrum
from reports.result import HISTOGRAMS, Result
from reports.style import (
    AMBER,
    BAND,
    BLUE,
    GREEN,
    GREY,
    MUTED,
    PURPLE,
    VERMILION,
    Colour,
    label_ends,
    linear,
    logarithmic_latency,
    panels,
)

# Colours by words in the name of a line; the first match counts.
OWNERS = {
    "heap": GREY,
    "WAL": AMBER,
    "runner": BLUE,
    "database": VERMILION,
    "kafka": VERMILION,
    "redis": VERMILION,
    "app": GREEN,
}
# With at least this many seconds, single values are a cloud, so the median is drawn as well.
SMOOTH_FROM = 900
SMOOTH_SECONDS = 61

Line = tuple[pd.Series, str, Colour]


def rates(result: Result) -> Figure | None:
    """Offered, published and consumed rates over time."""
    series = result.series
    if series is None:
        return None
    figure, (axes,) = panels([2.6])
    lines: list[Line] = []
    consumers = result.settings.get("consumers", 1)
    for column, text, colour in (
        ("offered_rate", "offered", GREY),
        ("publish_rate", "published", BLUE),
        ("consume_rate", "consumed" if consumers == 1 else f"consumed by {consumers}", VERMILION),
    ):
        if _has(series, column):
            lines.append((series[column], text, colour))
    _draw(axes, series["t"], lines, widths=(4.0, 1.8, 1.2))
    linear(axes, "Events per second")
    _finish([axes], result, [lines])
    return figure


def latency(result: Result) -> Figure | None:
    """Latency of each second, publish above, publish to handler below."""
    series = result.series
    if series is None:
        return None
    parts = [
        (title, [column for column in columns if _has(series, column)])
        for title, columns in (
            ("Intended send to acknowledgement", ("publish_p50_ms", "publish_p99_ms", "publish_max_ms")),
            ("Intended send to handler", ("end_to_end_p50_ms", "end_to_end_p99_ms")),
        )
    ]
    parts = [(title, columns) for title, columns in parts if columns]
    if not parts:
        return None
    figure, all_axes = panels([2.1] * len(parts))
    all_lines: list[list[Line]] = []
    for axes, (title, columns) in zip(all_axes, parts, strict=True):
        lines: list[Line] = []
        for column in columns:
            name = column.split("_")[-2]
            colour = {"p50": BLUE, "p99": VERMILION, "max": GREY}[name]
            lines.append((series[column].clip(lower=0.001), name, colour))
        # The slowest are drawn first, because they vary the most.
        _draw(axes, series["t"], lines[::-1], widths=(1.0, 1.4, 1.8)[-len(lines) :])
        logarithmic_latency(axes, title)
        all_lines.append(lines)
    _finish(all_axes, result, all_lines)
    return figure


def percentiles(result: Result) -> Figure | None:
    """Latency by percentile, of all measured events."""
    histograms: Mapping[str, str] = result.data.get("histograms") or {}
    figure, (axes,) = panels([3.0])
    ends: list[tuple[float, str, Colour]] = []
    farthest = 0.0
    for (name, text), colour in zip(HISTOGRAMS.items(), (BLUE, VERMILION, GREY), strict=True):
        points = spectrum(histograms[name]) if histograms.get(name) else None
        if points is None:
            continue
        axes.plot(points.nines, points.latency_ms, color=colour.light)
        ends.append((points.latency_ms[-1], text.replace(" to ", "\nto "), colour))
        farthest = max(farthest, points.nines[-1])
    if not ends:
        return None
    axes.set_xlim(FIRST_NINE, farthest)
    half = float(np.log10(2))
    axes.xaxis.set_major_locator(FixedLocator([half, *(float(n) for n in range(1, int(farthest) + 1))]))
    axes.xaxis.set_major_formatter(FuncFormatter(_percentile))
    axes.set_xlabel("percentile of events")
    logarithmic_latency(axes, "Latency by percentile")
    label_ends(axes, ends, lines_per_label=2)
    return figure


def backlog(result: Result) -> Figure | None:
    """Events published and not yet handled, and events sent and not yet answered."""
    series = result.series
    if series is None:
        return None
    parts: list[tuple[str, Line]] = [
        (title, (series[column], text, colour))
        for column, title, text, colour in (
            ("lag", "Lag: events published and not yet handled", "lag", VERMILION),
            ("in_flight", "Events sent and not yet answered", "in flight", BLUE),
            ("missed", "Slots missed because too much was in flight, per second", "missed", PURPLE),
            ("failed", "Events whose publish failed, per second", "failed", AMBER),
        )
        if _has(series, column) and (column in ("lag", "in_flight") or series[column].max() > 0)
    ]
    return _small_panels(result, series, [(title, [line]) for title, line in parts])


def resources(result: Result) -> Figure | None:
    """CPU and memory of each process, WAL and disk."""
    frame = result.resources
    if frame is None:
        return None
    processes = _summed(frame, "cpu_cores")
    memory = _summed(frame, "rss_mb")
    heap = _summed(frame, "heap_mb")
    written = _summed(frame, "write_mb_per_second")
    wal = _summed(frame, "wal_mb_per_second", "WAL of databases")
    disk = {f"written by {name}": values for name, values in written.items() if values.max() > 0.01}
    disk |= _summed(frame, "disk_write_mb_per_second", "written to disk")
    parts = [
        ("CPU cores in use", _lines(processes)),
        ("Resident memory, MB", _lines({**memory, **{f"{n}'s heap": v for n, v in heap.items()}})),
        ("WAL and disk, MB per second", _lines({**wal, **disk})),
    ]
    return _small_panels(result, frame, [(title, lines) for title, lines in parts if lines])


def tables(result: Result) -> Figure | None:
    """Growth of the databases, and activity of vacuum."""
    frame = result.resources
    if frame is None:
        return None
    parts = []
    for title, column, text, colour in (
        ("Size of the databases, MB", "database_mb", "size", BLUE),
        ("Dead rows", "dead_tuples", "dead rows", VERMILION),
        ("Runs of autovacuum since the start", "autovacuums", "autovacuums", GREEN),
        ("Checkpoints since the start", "checkpoints", "checkpoints", PURPLE),
    ):
        total = _summed(frame, column, text)
        if not total:
            continue
        values = total[text]
        if column in ("autovacuums", "checkpoints"):
            values = values - values.dropna().iloc[0]
        parts.append((title, [(values, text, colour)]))
    return _small_panels(result, frame, parts)


# In the order of the page: file name, title, and the function that draws it.
PLOTS: Sequence[tuple[str, str, Callable[[Result], Figure | None]]] = (
    ("rates", "Rates", rates),
    ("latency", "Latency over time", latency),
    ("percentiles", "Latency by percentile", percentiles),
    ("backlog", "Lag and in flight", backlog),
    ("resources", "Resources", resources),
    ("tables", "Tables and vacuum", tables),
    ("trials", "Trials", trial_plots.blast),
    ("sweep", "Trials", trial_plots.sweep),
    ("search", "Rates tried", trial_plots.search),
)


def _has(frame: pd.DataFrame, column: str) -> bool:
    return column in frame and bool(frame[column].notna().any())


def _summed(frame: pd.DataFrame, metric: str, name: str | None = None) -> dict[str, pd.Series]:
    """A metric by kind of process: those of several databases, members or runners are added up.

    With a name, everything is one.
    """
    groups: dict[str, list[str]] = {}
    for column in frame.columns:
        owner, _, of = column.rpartition(".")
        if of == metric and _has(frame, column):
            groups.setdefault(name or _kind(owner), []).append(column)
    return {
        (kind if len(columns) == 1 or name else f"{len(columns)} {kind}s"): frame[columns].sum(
            axis=1, min_count=1
        )
        for kind, columns in groups.items()
    }


def _kind(owner: str) -> str:
    """The kind of a process, without its number: `database-0-b` is a standby of the first database."""
    if re.fullmatch(r"database-\d+-.+", owner):
        return "standby"
    return owner.rstrip("0123456789").rstrip("-")


def _lines(values: Mapping[str, pd.Series]) -> list[Line]:
    return [(series, name, _colour(name)) for name, series in values.items()]


def _colour(name: str) -> Colour:
    """The colour of a line, the same in every panel, found by a word in the name."""
    return next((colour for word, colour in OWNERS.items() if word in name), PURPLE)


def _small_panels(
    result: Result, frame: pd.DataFrame, parts: Sequence[tuple[str, list[Line]]]
) -> Figure | None:
    if not parts:
        return None
    figure, all_axes = panels([1.6] * len(parts))
    for axes, (title, lines) in zip(all_axes, parts, strict=True):
        _draw(axes, frame["t"], lines, steps="since the start" in title)
        linear(axes, title)
    _finish(all_axes, result, [lines if len(lines) > 1 else [] for _, lines in parts])
    return figure


def _draw(
    axes: Axes, time: pd.Series, lines: Sequence[Line], widths: Sequence[float] = (), steps: bool = False
) -> None:
    for index, (values, _, colour) in enumerate(lines):
        width = widths[index] if widths else 1.5
        if len(time) >= SMOOTH_FROM and not steps and colour is not GREY:
            axes.plot(time, values, color=colour.light, linewidth=0.6, alpha=0.3)
            middle = values.rolling(SMOOTH_SECONDS, center=True, min_periods=1).median()
            axes.plot(time, middle, color=colour.light, linewidth=width)
            continue
        axes.plot(
            time,
            values,
            color=colour.light,
            linewidth=width,
            drawstyle="steps-post" if steps else "default",
            alpha=0.55 if colour is GREY else 1.0,
        )


def _finish(all_axes: Sequence[Axes], result: Result, labels: Sequence[Sequence[Line]]) -> None:
    """Adds time axis, phases and the names of lines to panels that share their time."""
    series = result.series if result.series is not None else result.resources
    assert series is not None
    start, end = float(series["t"].min()), float(series["t"].max())
    all_axes[0].set_xlim(start, max(end, start + 1))
    all_axes[-1].set_xlabel("seconds since the measured part began")
    measured = {measurement.name for measurement in result.measurements if measurement.measured}
    spans = result.spans if len(result.spans) > 1 else []
    if spans:
        _make_room_on_top(all_axes[0])
    for number, span in enumerate(spans):
        for index, axes in enumerate(all_axes):
            if number % 2 == 0:
                axes.axvspan(span.start, span.end, color=BAND.light, zorder=0, linewidth=0)
            if index == 0 and (span.end - span.start) > 0.04 * (end - start):
                axes.annotate(
                    span.name if not measured or span.name in measured else f"({span.name})",
                    xy=((max(span.start, start) + min(span.end, end)) / 2, 1),
                    xycoords=("data", "axes fraction"),
                    xytext=(0, -2),
                    textcoords="offset points",
                    ha="center",
                    va="top",
                    color=MUTED.light,
                    fontsize=8,
                )
    figure = all_axes[0].get_figure(root=True)
    assert figure is not None
    # Labels need the final height of the panels.
    figure.draw_without_rendering()
    for axes, lines in zip(all_axes, labels, strict=True):
        label_ends(axes, [(_end(values), text, colour) for values, text, colour in lines])


def _make_room_on_top(axes: Axes) -> None:
    """Makes room for the names of the phases."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.15 if axes.get_yscale() == "log" else high * 1.15)


def _end(values: pd.Series) -> float:
    """The visual end of a line: the median of its last values."""
    last = SMOOTH_SECONDS if len(values) >= SMOOTH_FROM else 5
    return float(values.dropna().tail(last).median())


def _percentile(nine: float, _position: object = None) -> str:
    percent = 100 * (1 - 10.0**-nine)
    return f"{percent:.{max(0, round(nine) - 2)}f}%"
