"""What an event costs, as Markdown: from the parts cost and fanout of a kept result of the limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from workload_tables import markdown_table

# What a row shows: the figure, its column in the part, and how it is written.
ROWS = (
    ("events/s", "events_per_second", "steady", ",.0f"),
    ("cores of the database", "server_cores", "steady", ",.2f"),
    ("µs of the database per event", "server_us_per_event", "steady", ""),
    ("µs of the client per event", "client_us_per_event", "steady", ""),
    ("transactions per event", "transactions_per_event", "steady", ",.3f"),
    ("blocks found in shared buffers per event", "blocks_hit_per_event", "steady", ",.1f"),
    ("bytes of WAL per event", "wal_bytes_per_event", "steady", ",.0f"),
    ("the same, over an interval with a checkpoint", "wal_bytes_per_event", "with a checkpoint", ",.0f"),
    ("of those, page images per 1,000 events", "page_images_per_1000_events", "with a checkpoint", ",.1f"),
)
RATIOS = (
    ("the database's processor time", "server_us_per_event"),
    ("the transactions", "transactions_per_event"),
    ("the blocks", "blocks_hit_per_event"),
    ("the WAL", "wal_bytes_per_event"),
)


def costs(results: Sequence[Mapping[str, Any]]) -> str:
    """A column for each load; empty if no result has both parts."""
    for result in results:
        parts = {part["name"]: part for part in result.get("parts", [])}
        if "cost" in parts and "fanout" in parts:
            return "\n\n".join([_costs(parts["cost"]), _fan_out(parts["fanout"]), _origin(result)])
    return ""


def _costs(part: Mapping[str, Any]) -> str:
    loads = {table["name"]: _figures(table) for table in part["tables"]}
    rows = [
        {
            "what": name,
            **{load: figure_text(figures[figure][column], form) for load, figures in loads.items()},
        }
        for name, figure, column, form in ROWS
    ]
    return markdown_table(rows)


def _figures(table: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {row["name"]: row["figures"] for row in table["rows"]}


def figure_text(figure: Mapping[str, Any], form: str = ",.2f") -> str:
    """A figure, with its interval if it has one."""
    value = figure["value"]
    form = form or (",.0f" if value >= 10 else ",.1f")
    if "low" not in figure:
        return format(value, form)
    return f"{value:{form}} ({figure['low']:{form}}–{figure['high']:{form}})"


def _fan_out(part: Mapping[str, Any]) -> str:
    table = part["tables"][-1]
    figures = _figures(table)
    ratios = ", ".join(f"{figure_text(figures[figure]['steady'])} times {name}" for name, figure in RATIOS)
    return f"Ten consumers of one stream in one process, compared with one, at 1,000/s: {ratios}."


def _origin(result: Mapping[str, Any]) -> str:
    machine, database = result["machine"], result["databases"][0]
    rounds = len(result["parts"][0]["tables"][0]["rows"][0]["figures"]["steady"].get("rounds", [0]))
    return (
        f"Medians of {rounds} rounds with the bootstrap 95 % interval; {machine['cpus']} CPUs,"
        f" {machine['os']}; PostgreSQL {database['version']} with `fsync={database['fsync']}`,"
        f" `synchronous_commit={database['synchronous_commit']}`; Java {machine['java_version']};"
        f" commit {str(result['git_commit'])[:8]}; `{result['command']}`."
    )
