"""Prints kept results as Markdown tables, or writes them into a README: see --help."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from held_snapshots import held_snapshots
from reports.order import natural_order
from side_by_side import side_by_side
from workload_tables import Run, hardware, machine, tables

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- results: written by scripts/results_table.py -->"
END = "<!-- results end -->"
# The workload that measures several systems in one run.
COMPARISON = "compare"


def read(folder: Path) -> list[dict[str, Any]]:
    """Reads the results in the folder's subfolders that belong to no table of a workload, by name."""
    results = [json.loads(file.read_text()) for file in sorted(folder.glob("*/result.json"))]
    return [
        _flat(result) for result in results if result.get("kind") == "limits" or not result.get("workload")
    ]


def _flat(result: dict[str, Any]) -> dict[str, Any]:
    """The result with machine and database at the top level, as in those of the main job."""
    if result.get("kind") != "limits":
        return result
    database = result["databases"][0]
    return {**result, **result["machine"], **database, "postgres_version": database["version"]}


def read_workloads(folder: Path, workloads: Sequence[str] = ()) -> list[Run]:
    """Reads the results of all workloads or these, in the order of measurement."""
    files = sorted(folder.rglob("result.json"), key=natural_order)
    runs = [Run(file.parent, json.loads(file.read_text())) for file in files]
    chosen = [
        run
        for run in runs
        if run.result.get("workload")
        and run.kind != "limits"
        and (not workloads or run.result["workload"] in workloads)
    ]
    return sorted(chosen, key=lambda run: str(run.result.get("started_at") or ""))


def summary(folder: Path) -> str:
    """The runs that belong to no workload, a row each, and their machine."""
    results = [result for result in read(folder) if "publish_rate" in result]
    return table(results) if results else ""


def markdown(folder: Path, seen_from: Path, workloads: Sequence[str] = (), *, main_only: bool = False) -> str:
    """All results of a folder, with links relative to the folder `seen_from`.

    With names of workloads, only theirs; or only what belongs to no workload, and systems side by side.
    """
    runs = [] if main_only else read_workloads(folder, workloads)
    others = [] if workloads else read(folder)
    parts = []
    if others:
        parts.append(table(others))
    compared = read_workloads(folder, [COMPARISON]) if main_only else []
    if compared:
        parts.append(f"{compared[0].result['description']}\n\n{side_by_side(compared)}")
        parts.append(machine(compared))
    if runs:
        parts.append(tables(runs, lambda run: os.path.relpath(run, seen_from)))
        parts += filter(None, [held_snapshots(runs)])
        parts.append(machine(runs))
    return "\n\n".join(parts)


def table(results: Sequence[dict[str, Any]]) -> str:
    """For each machine: a row for each run, then the result of the limits benchmark, then the machine."""
    machines: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        machines.setdefault(hardware(result), []).append(result)
    return "\n\n".join(_of_machine(of_machine) for of_machine in machines.values())


def _of_machine(results: Sequence[dict[str, Any]]) -> str:
    runs = [result for result in results if "publish_rate" in result]
    limits = [
        result for result in results if any(part["name"] == "append" for part in result.get("parts", []))
    ]
    head = [
        "| command | published and consumed | publish p50 / p99 | publish to handler p50 / p99 | runs |",
        "|---|---:|---:|---:|---:|",
    ]
    parts = ["\n".join([*head, *(_row(result) for result in runs)])] if runs else []
    return "\n\n".join([*parts, *(_ratios(result) for result in limits), _machine(results)])


def _row(result: dict[str, Any]) -> str:
    if not result["passed"]:
        raise ValueError(f"{result['command']} did not pass")
    command = result["command"].replace(" bash scripts/run_local_benchmark.bash", "")
    return (
        f"| `{command}` | {result['consume_rate']:,.0f}/s"
        f" | {_latency(result['publish_latency_ms'])} | {_latency(result['end_to_end_latency_ms'])}"
        " | one run |"
    )


def _latency(percentiles: dict[str, float]) -> str:
    return f"{percentiles['p50']:,.1f} / {percentiles['p99']:,.1f} ms"


def _ratios(result: dict[str, Any]) -> str:
    part = next(part for part in result["parts"] if part["name"] == "append")
    rows = {row["name"]: row["figures"] for table in part["tables"] for row in table["rows"]}
    copies = {name: row for name, row in rows.items() if name.startswith("COPY ")}
    rates = " and ".join(
        f"{copy['events_per_second']['value']:,.0f} rows/s ({name.removeprefix('COPY BINARY, ')})"
        for name, copy in copies.items()
    )
    shares = {
        name: " and ".join(format(row[f"vs {copy}"]["value"], ".0%") for copy in copies)
        for name, row in rows.items()
        if all(f"vs {copy}" in row for copy in copies)
    }
    ratios = ", ".join(f"{name} {share}" for name, share in shares.items())
    return (
        f"Of a plain binary COPY into the same tables, {rates}, committed every"
        f" {rows['copy_events_per_commit']['value']['value']:,.0f} rows in the same run"
        f" (`{result['command']}`, without a consumer), the library, which appends over two, reaches:"
        f" {ratios}."
    )


def _machine(results: Sequence[dict[str, Any]]) -> str:
    def all_of(field: str) -> str:
        return ", ".join(sorted({str(result[field]) for result in results}))

    commits = ", ".join(sorted({result["git_commit"][:8] for result in results}))
    return (
        f"{all_of('cpus')} CPUs shared by databases, app and runners; PostgreSQL {all_of('postgres_version')}"
        f" with `fsync={all_of('fsync')}`, `synchronous_commit={all_of('synchronous_commit')}`; Java"
        f" {all_of('java_version')}; {all_of('os')}; commit {commits}."
    )


def replace(readme: str, text: str) -> str:
    """Returns the README with the tables between its markers."""
    begin = readme.index(BEGIN) + len(BEGIN)
    end = readme.index(END)
    return f"{readme[:begin]}\n{text}\n{readme[end:]}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="""Examples:
  python3 scripts/results_table.py results/2026-11-22
  python3 scripts/results_table.py results/2026-11-22 --readme results/README.md
  python3 scripts/results_table.py results/2026-11-22 --summary --readme README.md
  python3 scripts/results_table.py results/2026-11-22 --main-only --readme docs/benchmarks.md
  python3 scripts/results_table.py results/2026-11-22 --workload compare --workload fan-out""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a set of kept results: folders with a result.json each")
    parser.add_argument("--workload", action="append", default=[], help="only this workload; may be repeated")
    parser.add_argument(
        "--main-only", action="store_true", help="no workloads except the comparison of systems"
    )
    parser.add_argument("--summary", action="store_true", help="only the rows of the main runs")
    parser.add_argument("--readme", type=Path, help="file to write the tables to, between its markers")
    parsed = parser.parse_args(arguments)
    seen_from = parsed.readme.parent if parsed.readme else Path()
    if parsed.summary:
        text = summary(parsed.folder)
    else:
        text = markdown(parsed.folder, seen_from, parsed.workload, main_only=parsed.main_only)
    if not text:
        parser.error(f"there is no such result.json in {parsed.folder}")
    if parsed.readme:
        parsed.readme.write_text(replace(parsed.readme.read_text(), text))
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
