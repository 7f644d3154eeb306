"""Draws the resource usage of containers over time. Needs matplotlib."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from docker_stats.reading import Sample

# Name, label, value, and whether it is a counter, which is shown from the first sample on.
PLOTS: tuple[tuple[str, str, Callable[[Sample], float], bool], ...] = (
    ("cpu", "CPU, cores", lambda sample: sample.cpu_cores, False),
    ("memory", "memory, MB", lambda sample: sample.memory_mb, False),
    ("written", "written to disk since the start, MB", lambda sample: sample.written_mb, True),
    ("network", "received and sent since the start, MB", lambda s: s.received_mb + s.sent_mb, True),
)


def draw(samples: Sequence[Sample], folder: Path) -> list[Path]:
    """Draws a plot per metric with a line per container; omits samples without a time.

    Raises ModuleNotFoundError without matplotlib.
    """
    from matplotlib.figure import Figure

    lines: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.time is not None:
            lines[f"{sample.container} on {sample.host}"].append(sample)
    if not lines:
        return []
    started = min(sample.time.timestamp() for line in lines.values() for sample in line if sample.time)
    plots = []
    for name, label, figure_of, is_counter in PLOTS:
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        axes = figure.subplots()
        for container, line in sorted(lines.items()):
            seconds = [sample.time.timestamp() - started for sample in line if sample.time]
            base = figure_of(line[0]) if is_counter else 0.0
            axes.plot(seconds, [figure_of(sample) - base for sample in line], label=container)
        axes.set_xlabel("seconds")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False, fontsize="small")
        file = folder / f"docker-stats-{name}.png"
        figure.savefig(file, dpi=120)
        plots.append(file)
    return plots
