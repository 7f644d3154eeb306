"""The plots of a run with trials. Each function returns None for other runs."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from reports.result import Result
from reports.style import (
    BLUE,
    GREEN,
    INK,
    LIMIT,
    VERMILION,
    boxes,
    linear,
    logarithmic_latency,
    milliseconds,
    panels,
    short,
)


def blast(result: Result) -> Figure | None:
    """Distribution of throughput and mean latency over the trials of a blast."""
    if result.kind != "blast" or result.trials.empty:
        return None
    trials = result.trials
    figure, all_axes = panels([1.9, 1.9, 1.9], share_x=False)
    for axes, (column, title, colour) in zip(
        all_axes,
        (
            ("throughput_events_per_second", "Throughput of a trial, events/s", BLUE),
            ("bandwidth_mb_per_second", "Bandwidth of a trial, MB/s", GREEN),
            ("latency_mean_ms", "Mean latency of a trial, ms", VERMILION),
        ),
        strict=True,
    ):
        values = trials[column].dropna()
        if values.empty:
            continue
        axes.hist(values, bins=min(40, max(len(values) // 4, 5)), color=colour.light, alpha=0.75)
        median = float(values.median())
        axes.axvline(median, color=INK.light, linewidth=1)
        axes.annotate(
            f"median {short(median)}",
            xy=(median, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
        )
        axes.set_ylim(0, axes.get_ylim()[1] * 1.15)
        linear(axes, title)
        axes.set_ylabel("trials")
        axes.xaxis.set_major_formatter(FuncFormatter(short))
    return figure


def sweep(result: Result) -> Figure | None:
    """Duration of the trials of a sweep by number of events."""
    if result.kind != "sweep" or result.trials.empty:
        return None
    trials = result.trials
    counts = sorted(trials["event_count"].unique())
    figure, (axes,) = panels([max(1.2, 0.42 * len(counts) + 0.4)])
    axes.set_xscale("log")
    axes.boxplot(
        [trials[trials["event_count"] == count]["duration_ms"] for count in counts],
        positions=range(len(counts)),
        **boxes(BLUE),
    )
    axes.set_yticks(range(len(counts)), [f"{count:,}" for count in counts])
    axes.set_ylim(len(counts) - 0.5, -0.5)
    axes.set_ylabel("events")
    axes.grid(True, axis="x")
    axes.grid(False, axis="y")
    axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(milliseconds))
    axes.set_title("Time of a trial, by the number of events")
    return figure


def search(result: Result) -> Figure | None:
    """The rates of a search, and whether each was sustained."""
    found = result.data.get("search") or {}
    trials = [trial for trial in found.get("trials", []) if trial.get("latency_ms") is not None]
    if not trials:
        return None
    figure, (axes,) = panels([2.8])
    for held, colour, mark, text in ((True, GREEN, "o", "held"), (False, VERMILION, "X", "did not hold")):
        chosen = [trial for trial in trials if bool(trial["held"]) == held]
        rates_tried = [trial["rate"] for trial in chosen]
        axes.plot(
            rates_tried,
            [max(trial["latency_ms"], 0.001) for trial in chosen],
            mark,
            color=colour.light,
            markersize=8,
        )
        if chosen:
            last = max(chosen, key=lambda trial: float(trial["rate"]))
            axes.annotate(
                text,
                xy=(last["rate"], max(last["latency_ms"], 0.001)),
                xytext=(8, -4),
                textcoords="offset points",
                color=colour.light,
            )
    limit = result.settings.get("search.limit_ms")
    if limit:
        axes.axhline(limit, color=LIMIT.light, linestyle="--", linewidth=1.4)
        axes.annotate(
            f"limit {milliseconds(limit)}",
            xy=(0, limit),
            xycoords=("axes fraction", "data"),
            xytext=(4, 4),
            textcoords="offset points",
            color=LIMIT.light,
        )
    axes.set_xlim(0, max(float(trial["rate"]) for trial in trials) * 1.15)
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.set_xlabel("rate tried, events per second")
    percentile = result.settings.get("search.percentile")
    named = f"p{percentile:g}" if isinstance(percentile, int | float) else "latency"
    logarithmic_latency(
        axes, f"Latency ({named}) by rate; the highest that held: {short(found['best_rate'])}/s"
    )
    return figure
