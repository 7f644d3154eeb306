"""The style of all plots: colours for colour-blind readers, few lines, labels next to the data."""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator


@dataclass(frozen=True)
class Colour:
    """A colour on white paper, and its counterpart on a dark screen."""

    name: str
    light: str
    dark: str


# After Okabe and Ito, whose colours are distinguishable with all common kinds of colour blindness.
BLUE = Colour("blue", "#0072b2", "#5cb8f0")
VERMILION = Colour("vermilion", "#d55e00", "#f5935a")
GREEN = Colour("green", "#008f68", "#3fcf9f")
PURPLE = Colour("purple", "#a04d86", "#dc9cc8")
AMBER = Colour("amber", "#a87400", "#e8bf5a")
GREY = Colour("grey", "#8b919a", "#8b919b")
INK = Colour("ink", "#1f2328", "#e6edf3")
MUTED = Colour("muted", "#59636e", "#9da7b1")
GRID = Colour("grid", "#e3e6ea", "#30363d")
BAND = Colour("band", "#f3f5f8", "#1d232b")
LIMIT = Colour("limit", "#5a5f66", "#aeb4bb")
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, AMBER, GREY, INK, MUTED, GRID, BAND, LIMIT)
SERIES = (BLUE, VERMILION, GREEN, PURPLE, AMBER, GREY)

WIDTH_INCHES = 7.6
PNG_DPI = 170
LABEL_POINTS = 9
# From this ratio of the largest to the smallest value, a linear axis hides the small ones.
LOGARITHMIC_RATIO = 50
# The minimum distance between two labels at the ends of lines.
LABEL_DISTANCE = 12.0

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": LABEL_POINTS,
    "text.color": INK.light,
    "axes.labelcolor": MUTED.light,
    "axes.edgecolor": GRID.light,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": LABEL_POINTS,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID.light,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "xtick.labelsize": LABEL_POINTS,
    "ytick.labelsize": LABEL_POINTS,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "figure.dpi": 72,
}
matplotlib.rcParams.update(STYLE)


def boxes(colour: Colour) -> Any:  # noqa: ANN401  # arguments of Axes.boxplot, each of its own type
    """The style of box plots: horizontal, the median in ink."""
    return {
        "orientation": "horizontal",
        "widths": 0.5,
        "patch_artist": True,
        "medianprops": {"color": INK.light, "linewidth": 1.6},
        "whiskerprops": {"color": colour.light},
        "capprops": {"color": colour.light},
        "boxprops": {"edgecolor": colour.light, "facecolor": colour.light, "alpha": 0.35},
        "flierprops": {"markeredgecolor": MUTED.light, "markersize": 4},
    }


def panels(heights: Sequence[float], share_x: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure with panels one below the other, of these heights in inches."""
    figure = Figure(figsize=(WIDTH_INCHES, sum(heights) + 0.45), layout="constrained")
    axes = figure.subplots(
        len(heights), 1, sharex=share_x, squeeze=False, gridspec_kw={"height_ratios": list(heights)}
    )
    return figure, list(axes[:, 0])


def lay_out(figure: Figure) -> None:
    """Places everything in the finished figure: writing it would do so twice for each format."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an SVG element for a page, whose colours follow the page's."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    # A page does not need metadata and ids, and their names would occur twice.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="(\w+)_\d+">', "<g>", svg)
    for colour in COLOURS:
        svg = svg.replace(colour.light, f"var(--{colour.name})")
    svg = svg.replace("'DejaVu Sans', sans-serif", "var(--font)").replace("'DejaVu Sans'", "var(--font)")
    return re.sub(r"<svg ", f'<svg role="img" data-plot="{name}" ', svg, count=1)


def to_png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None})
    return out.getvalue()


def short(value: float, _position: object = None) -> str:
    """A number for an axis or a label: 1,200 is 1.2k."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit * 0.99995:
            return f"{_digits(value / limit)}{unit}"
    return _digits(value)


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 1:
        return f"{value:.2g}"
    return f"{value:,.{1 if abs(value) >= 10 else 2}f}".rstrip("0").rstrip(".")


def size(value: float) -> str:
    """A number of bytes."""
    for limit, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= limit:
            return f"{_digits(value / limit)} {unit}"
    return f"{_digits(value)} B"


def milliseconds(value: float, _position: object = None) -> str:
    """A latency with its unit."""
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{_digits(value / 1000)} s"
    if value < 0.1:
        return f"{_digits(value * 1000)} µs"
    return f"{_digits(value)} ms"


def linear(axes: Axes, title: str) -> None:
    """A value axis from zero."""
    axes.set_title(title)
    axes.set_ylim(0, axes.get_ylim()[1] if axes.dataLim.ymax > 0 else 1)
    axes.yaxis.set_major_locator(
        MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], integer=not 0 < axes.dataLim.ymax < 1)
    )
    axes.yaxis.set_major_formatter(FuncFormatter(short))


def logarithmic_latency(axes: Axes, title: str) -> None:
    """A logarithmic axis of latencies, with units at its ticks."""
    axes.set_title(title)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high / low < LOGARITHMIC_RATIO:
        low, high = low / 1.5, high * 1.5
        axes.set_ylim(low, high)
    # An axis with hardly a power of ten gets labels in between, too.
    steps = (1.0, 2.0, 5.0) if high / low < LOGARITHMIC_RATIO else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(10, subs=steps, numticks=8))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(milliseconds))


def label_ends(axes: Axes, labels: Iterable[tuple[float, str, Colour]], lines_per_label: int = 1) -> None:
    """Names lines at their right ends, given the values they end at; none covers another.

    Call it when the axis has its scale and limits.
    """
    sorted_labels = sorted(
        ((y, text, colour) for y, text, colour in labels if y == y), key=lambda label: label[0]
    )
    if not sorted_labels:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = axes.get_position().height * figure.get_figheight() * 72
    low, high = axes.get_ylim()
    transform = axes.yaxis.get_transform()
    scaled_low, scaled_high = (float(transform.transform([v])[0]) for v in (low, high))

    def points(y: float) -> float:
        inside = min(max(y, low), high)
        scaled = float(transform.transform([inside])[0])
        return (scaled - scaled_low) / (scaled_high - scaled_low) * height

    places = spread([points(y) for y, _, _ in sorted_labels], LABEL_DISTANCE * lines_per_label, height)
    for (_, text, colour), place in zip(sorted_labels, places, strict=True):
        axes.annotate(
            text,
            xy=(1, place / height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=colour.light,
            va="center",
            ha="left",
            fontsize=LABEL_POINTS,
            annotation_clip=False,
        )


def spread(positions: Sequence[float], distance: float, limit: float) -> list[float]:
    """Moves ascending positions as little as needed to keep this distance, within 0 and a limit."""
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + distance) if moved else max(position, 0.0))
    over = moved[-1] - limit if moved else 0.0
    for index in range(len(moved) - 1, -1, -1):
        if over <= 0:
            break
        moved[index] -= over
        over = distance - (moved[index] - moved[index - 1]) if index else 0.0
    return moved
