"""The plots that compare several runs. Each function returns None for runs without the data it draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from reports.result import LATENCIES, Measurement, Result
from reports.style import (
    BLUE,
    GREY,
    INK,
    LABEL_POINTS,
    LOGARITHMIC_RATIO,
    MUTED,
    SERIES,
    VERMILION,
    Colour,
    boxes,
    label_ends,
    logarithmic_latency,
    milliseconds,
    panels,
    short,
)

BAR_INCHES = 0.3
# Dots closer than this factor have their numbers at their outer sides.
NEAR = 3
# Rates that differ by less than this ratio are considered equal.
SAME_RATE = 0.01
# With at least this many values, a line is clearer than bars.
LINE_VALUES = 3


@dataclass(frozen=True)
class Varied:
    """The number that differs between the runs."""

    title: str
    values: Mapping[str, float]


def throughput(results: Sequence[Result]) -> Figure | None:
    """Published and consumed rates of each run, a panel for each common phase in which they differ."""
    shared = _phases(results)
    differing = {phase: found for phase, found in shared.items() if not _same_rate(list(found.values()))}
    phases = differing or shared
    if not phases:
        return None
    figure, all_axes = panels([_height(results)] * len(phases), share_x=len(phases) == 1)
    for axes, (phase, found) in zip(all_axes, phases.items(), strict=True):
        places = list(range(len(results)))
        published = [found[r.name].publish_rate or 0 if r.name in found else 0 for r in results]
        consumed = [found[r.name].consume_rate if r.name in found else None for r in results]
        axes.barh(places, published, height=0.62, color=BLUE.light)
        for place, value, seen in zip(places, published, consumed, strict=True):
            if value:
                _annotate(axes, value, place, f"{short(value)}/s", INK)
            if seen:
                axes.plot([seen, seen], [place - 0.42, place + 0.42], color=VERMILION.light, linewidth=2.4)
        _runs_axis(axes, results)
        axes.set_xlim(0, max([*published, *(rate for rate in consumed if rate)]) * 1.14 or 1)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        named = f", phase {phase}" if len(shared) > 1 else ""
        consumers = "; the line is what all consumers got" if any(consumed) else ""
        axes.set_title(f"Published events per second{named}{consumers}")
    return figure


def latency_ranges(results: Sequence[Result], latency: str) -> Figure | None:
    """Median, p99 and maximum of each run, a panel for each common phase."""
    phases = {
        phase: found
        for phase, found in _phases(results).items()
        if any(measurement.latency(latency, "p50") for measurement in found.values())
    }
    if not phases:
        return None
    figure, all_axes = panels([_height(results)] * len(phases), share_x=True)
    shown_values: list[float] = []
    for axes, (phase, found) in zip(all_axes, phases.items(), strict=True):
        axes.set_xscale("log")
        named = f", phase {phase}" if len(phases) > 1 else ""
        first = True
        for place, result in enumerate(results):
            measurement = found.get(result.name)
            values = [measurement.latency(latency, p) if measurement else None for p in ("p50", "p99", "max")]
            p50, p99, most = (max(value, 0.001) if value is not None else None for value in values)
            if p50 is None or p99 is None or most is None:
                continue
            axes.plot([p99, most], [place, place], color=GREY.light, linewidth=1.2, alpha=0.6)
            axes.plot([p50, p99], [place, place], color=BLUE.light, linewidth=4, alpha=0.35)
            shown_values += [p50, most]
            for value, colour, text, side in (
                (p50, BLUE, "median", "center" if p99 > NEAR * p50 else "right"),
                (p99, VERMILION, "p99", "center" if most > NEAR * p99 else "right"),
                (most, GREY, "max", "center" if most > NEAR * p99 else "left"),
            ):
                axes.plot([value], [place], "o", color=colour.light, markersize=6)
                shown = f"{text} {milliseconds(value)}" if first else milliseconds(value)
                axes.annotate(
                    shown,
                    xy=(value, place),
                    xytext=(0, 6),
                    textcoords="offset points",
                    ha=side,
                    va="bottom",
                    fontsize=7.5,
                    color=colour.light if colour is not GREY else MUTED.light,
                )
            first = False
        _runs_axis(axes, results, room=0.75)
        axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(milliseconds))
        axes.set_title(f"{_sentence(LATENCIES[latency])}{named}")
    if not shown_values:
        return None
    # A shared axis, with room for the numbers at both ends.
    all_axes[0].set_xlim(min(shown_values) / 2, max(shown_values) * 2)
    return figure


def latency_by_value(results: Sequence[Result]) -> Figure | None:
    """Latency by the varied value: the rate, or the only numeric setting that differs."""
    varied = varied_number(results)
    if varied is None:
        return None
    groups: dict[int, list[Result]] = {}
    for result in sorted(results, key=lambda r: varied.values[r.name]):
        groups.setdefault(len(result.databases), []).append(result)
    names = [
        name
        for name in ("publish_latency_ms", "end_to_end_latency_ms")
        if any(_last(result).latency(name, "p99") for result in results)
    ]
    if not names:
        return None
    figure, all_axes = panels([2.4] * len(names))
    ends: list[list[tuple[float, str, Colour]]] = []
    for axes, name in zip(all_axes, names, strict=True):
        axes_ends = []
        for index, (databases, group) in enumerate(groups.items()):
            for percentile, line in (("p50", "-"), ("p99", "--")):
                points = [
                    (varied.values[result.name], _last(result).latency(name, percentile)) for result in group
                ]
                shown = [(x, max(y, 0.001)) for x, y in points if y is not None]
                colour = SERIES[index % len(SERIES)]
                axes.plot(
                    [x for x, _ in shown], [y for _, y in shown], line, marker="o", ms=4, color=colour.light
                )
                where = f", {databases} database{'' if databases == 1 else 's'}" if len(groups) > 1 else ""
                if shown:
                    axes_ends.append((shown[-1][1], f"{percentile}{where}", colour))
        logarithmic_latency(axes, _sentence(LATENCIES[name]))
        ends.append(axes_ends)
    _value_axis(all_axes[-1], varied.title, list(varied.values.values()))
    figure.draw_without_rendering()
    for axes, axes_ends in zip(all_axes, ends, strict=True):
        label_ends(axes, axes_ends)
    return figure


def blast(results: Sequence[Result]) -> Figure | None:
    """Distribution of throughput, bandwidth and mean latency of the trials of each run."""
    blasts = [result for result in results if result.kind == "blast" and not result.trials.empty]
    if not blasts:
        return None
    metrics = (
        ("throughput_events_per_second", "Throughput, events per second", BLUE),
        ("bandwidth_mb_per_second", "Bandwidth, MB per second", BLUE),
        ("latency_mean_ms", "Mean latency of a trial", VERMILION),
    )
    figure, all_axes = panels([_height(blasts)] * len(metrics), share_x=False)
    for axes, (column, title, colour) in zip(all_axes, metrics, strict=True):
        axes.boxplot(
            [result.trials[column].dropna() for result in blasts],
            positions=range(len(blasts)),
            whis=(5, 95),
            showfliers=False,
            **boxes(colour),
        )
        _runs_axis(axes, blasts)
        medians = [float(result.trials[column].median()) for result in blasts]
        if min(medians) > 0 and max(medians) / min(medians) >= LOGARITHMIC_RATIO:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(FuncFormatter(milliseconds if "latency" in column else short))
        axes.set_title(f"{title}: median, quartiles, 5% to 95%")
    return figure


def varied_number(results: Sequence[Result]) -> Varied | None:
    """The rate if it is offered at three values or more, else the only numeric setting that differs."""
    if len(results) < LINE_VALUES or not all(result.measured for result in results):
        return None
    rates = {result.name: _last(result).offered_rate for result in results}
    known = {name: rate for name, rate in rates.items() if rate}
    if len(known) == len(results) and len(set(known.values())) >= LINE_VALUES:
        return Varied("offered, events per second", known)
    candidates = []
    for setting in results[0].settings:
        values = [result.settings.get(setting) for result in results]
        if len(set(map(str, values))) == 1:
            continue
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) < len(values) or len(set(numbers)) < LINE_VALUES:
            return None
        candidates.append(Varied(setting, dict(zip([r.name for r in results], numbers, strict=True))))
    return candidates[0] if len(candidates) == 1 else None


def _last(result: Result) -> Measurement:
    return result.measured[-1]


def _phases(results: Sequence[Result]) -> dict[str, dict[str, Measurement]]:
    """Measured phases by name, each with its numbers by run; a run's only phase needs no name."""
    if all(len(result.measured) <= 1 for result in results):
        only = {result.name: result.measured[0] for result in results if result.measured}
        return {"": only} if only else {}
    phases: dict[str, dict[str, Measurement]] = {}
    for result in results:
        for measurement in result.measured:
            phases.setdefault(measurement.name, {})[result.name] = measurement
    return phases


def _same_rate(measurements: Sequence[Measurement]) -> bool:
    """Whether all published at the same rate, as they do at a set rate that each can sustain."""
    rates = [measurement.publish_rate or 0 for measurement in measurements]
    return max(rates) - min(rates) < SAME_RATE * max(rates)


def _height(results: Sequence[Result]) -> float:
    return max(0.7, BAR_INCHES * 1.25 * len(results) + 0.35)


def _runs_axis(axes: Axes, results: Sequence[Result], room: float = 0.6) -> None:
    axes.yaxis.set_major_locator(FixedLocator(range(len(results))))
    axes.set_yticks(range(len(results)), [result.name for result in results])
    axes.tick_params(axis="y", labelcolor=INK.light)
    axes.set_ylim(len(results) - 0.5, -room)
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _value_axis(axes: Axes, title: str, values: Sequence[float]) -> None:
    axes.set_xlabel(title)
    if min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_RATIO:
        axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    if len(set(values)) <= 8:
        axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
    axes.xaxis.set_major_formatter(FuncFormatter(short))


def _annotate(axes: Axes, value: float, place: float, text: str, colour: Colour) -> None:
    axes.annotate(
        text,
        xy=(value, place),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        color=colour.light,
        fontsize=LABEL_POINTS,
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
