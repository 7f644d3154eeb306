"""Builds self-contained pages, without network requests or scripts."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from reports.style import COLOURS, lay_out, short, to_png, to_svg

CSS = Path(__file__).with_name("page.css")


class Html(str):
    """Text that is already HTML; all other text is escaped."""

    __slots__ = ()


def text_of(value: object) -> str:
    if isinstance(value, Html):
        return value
    return escape(value_text(value))


def value_text(value: object) -> str:
    """A readable value: empty for None, numbers shortened, lists with commas."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else short(value)
    if isinstance(value, list):
        return ", ".join(value_text(item) for item in value)
    return str(value)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Html:
    """A table; columns of numbers are right-aligned, columns without any value are omitted."""
    used = [index for index in range(len(columns)) if any(value_text(row[index]) for row in rows)]
    numeric = {
        index: all(isinstance(row[index], int | float) or row[index] is None for row in rows)
        for index in used
    }

    def cell(tag: str, index: int, value: object) -> str:
        kind = ' class="number"' if numeric[index] else ""
        return f"<{tag}{kind}>{text_of(value)}</{tag}>"

    head = "".join(cell("th", index, columns[index]) for index in used)
    body = "".join(f"<tr>{''.join(cell('td', index, row[index]) for index in used)}</tr>\n" for row in rows)
    return Html(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'
    )


def facts(values: Mapping[str, object]) -> Html:
    """A table of names and values; those without a value are omitted."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{text_of(value)}</td></tr>\n"
        for name, value in values.items()
        if value_text(value)
    )
    return Html(f'<div class="scroll"><table><tbody>\n{rows}</tbody></table></div>')


def tiles(values: Mapping[str, object]) -> Html:
    """A few numbers in large type."""
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{text_of(value)}</dd></div>"
        for name, value in values.items()
        if value_text(value)
    )
    return Html(f'<dl class="tiles">{shown}</dl>')


def section(title: str, *parts: str) -> Html:
    return Html(f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>\n")


def plot(folder: Path, name: str, figure: Figure, caption: str = "") -> Html:
    """Writes the figure as a PNG into the folder, and returns it for the page."""
    lay_out(figure)
    (folder / f"{name}.png").write_bytes(to_png(figure))
    explained = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return Html(f'<figure><div class="scroll">{to_svg(figure, name)}</div>{explained}</figure>')


def page(title: str, *parts: str) -> str:
    """A complete page."""
    light = "".join(f"--{colour.name}: {colour.light}; " for colour in COLOURS)
    dark = "".join(f"--{colour.name}: {colour.dark}; " for colour in COLOURS)
    dark += "--paper: #0d1117; --good: #3fb97a; --bad: #ff7b63; "
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
:root {{ {light}}}
{CSS.read_text()}@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}
</style>
</head>
<body>
{"".join(parts)}</body>
</html>
"""
