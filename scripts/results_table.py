"""Prints kept results as Markdown tables, or writes them into a README: see --help."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cost_tables import costs, figure_text
from held_snapshots import held_snapshots
from reports.order import natural_order
from side_by_side import side_by_side, tuned
from workload_tables import (
    Run,
    by_name,
    commits,
    hardware,
    machine,
    markdown_table,
    of_rounds,
    repetitions,
    tables,
)

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- results: written by scripts/results_table.py -->"
END = "<!-- results end -->"
# The workload that measures several systems in one run.
COMPARISON = "compare"
# The workload with the rows of the README.
MAIN = "main"


def read(folder: Path) -> list[dict[str, Any]]:
    """Reads the results of the main job and the limits, by name, and those of several rounds together."""
    alone = [json.loads(file.read_text()) for file in sorted(folder.glob("*/result.json"))]
    rounds = [json.loads(file.read_text()) for file in sorted((folder / MAIN).rglob("result.json"))]
    chosen = [result for result in alone if result.get("kind") == "limits" or not result.get("workload")]
    return [_flat(result) for result in rounds + chosen]


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
        and run.result["workload"] != MAIN
        and (not workloads or run.result["workload"] in workloads)
    ]
    return sorted(chosen, key=lambda run: str(run.result.get("started_at") or ""))


def main_job(folders: Sequence[Path], omitted: str = "") -> str:
    """The rows of the main job, of the first set that has some, and their machine; without a column."""
    for folder in folders:
        if results := [result for result in read(folder) if "publish_rate" in result]:
            return table(results, omitted)
    return ""


def comparisons(folders: Sequence[Path]) -> list[list[Run]]:
    """The systems side by side, of each set that has them, the one with the most systems first.

    Without interrupted runs, whose last phase is a part of one.
    """
    compared = [
        [run for run in read_workloads(folder, [COMPARISON]) if not run.result.get("interrupted")]
        for folder in folders
    ]
    return sorted(filter(None, compared), key=lambda runs: len(by_name(runs)), reverse=True)


def summary(folders: Sequence[Path]) -> str:
    """The rows of the main job, and what each system reached with its best settings."""
    parts = [main_job(folders, omitted="publish p50 / p99")]
    if compared_sets := comparisons(folders):
        compared = compared_sets[0]
        count = min(len(of_name) for of_name in by_name(compared).values())
        runs = "one run" if count == 1 else f"{count} interleaved runs"
        parts += [
            f"EventSQL and tuned systems, published ({runs}, {commits(compared)}):",
            tuned(compared),
        ]
    return "\n\n".join(filter(None, parts))


def markdown(folder: Path, seen_from: Path, workloads: Sequence[str] = ()) -> str:
    """All results of a set, or only these workloads', with links relative to the folder `seen_from`."""
    runs = read_workloads(folder, workloads)
    others = [] if workloads else read(folder)
    parts = [table(others)] if others else []
    if runs:
        parts.append(tables(runs, lambda run: os.path.relpath(run, seen_from)))
        parts += filter(None, [held_snapshots(runs), machine(runs)])
    return "\n\n".join(parts)


def overview(folders: Sequence[Path]) -> str:
    """The main job and appends of rows and of blocks, each of the first set that has it; all comparisons."""
    parts = list(filter(None, [main_job(folders)]))
    newest: dict[str, dict[str, Any]] = {}
    for result in (result for folder in folders for result in read(folder) if _appends(result)):
        newest.setdefault(result["settings"]["limits"]["storage"], result)
    parts += [table([newest[storage]]) for storage in sorted(newest, reverse=True)]
    for number, compared in enumerate(comparisons(folders)):
        first = compared[0].result
        again = f"Some of them on another day, {str(first['started_at'])[:10]}:"
        parts += [again if number else str(first["description"]), side_by_side(compared), machine(compared)]
    return "\n\n".join(parts)


def table(results: Sequence[dict[str, Any]], omitted: str = "") -> str:
    """For each machine: a row for each command of the main job, then the limits, then the machine."""
    machines: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        machines.setdefault(hardware(result), []).append(result)
    return "\n\n".join(_of_machine(of_machine, omitted) for of_machine in machines.values())


def _of_machine(results: Sequence[dict[str, Any]], omitted: str) -> str:
    commands: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        if "publish_rate" in result:
            commands.setdefault(result["command"], []).append(result)
    rows = [_row(command, runs) for command, runs in sorted(commands.items(), key=_offered)]
    for row in rows:
        row.pop(omitted, None)
    limits = [result for result in results if _appends(result)]
    parts = [markdown_table(rows)] if rows else []
    return "\n\n".join([*parts, *(_limits(result) for result in limits), _machine(results)])


def _appends(result: dict[str, Any]) -> bool:
    return any(part["name"] == "append" for part in result.get("parts", []))


def _offered(command: tuple[str, list[dict[str, Any]]]) -> tuple[bool, int]:
    """Rates come before full speed, and the most shards first."""
    result = command[1][0]
    return (not result.get("rate_asked"), -result.get("shards", 1))


def _row(command: str, runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    if not all(run["passed"] for run in runs):
        raise ValueError(f"{command} did not pass")
    variables = command.replace("bash scripts/run_local_benchmark.bash", "").strip()
    return {
        "command": f"`{variables}`" if variables else "default",
        "published and consumed": f"{of_rounds([run['consume_rate'] for run in runs], ',.0f')}/s",
        "publish p50 / p99": _latency([run["publish_latency_ms"] for run in runs]),
        "publish to handler p50 / p99": _latency([run["end_to_end_latency_ms"] for run in runs]),
        "runs": repetitions(len(runs)),
    }


def _latency(percentiles: Sequence[dict[str, float]]) -> str:
    parts = (of_rounds([one[part] for one in percentiles], ",.1f") for part in ("p50", "p99"))
    return f"{' / '.join(parts)} ms"


def _limits(result: dict[str, Any]) -> str:
    """The library next to what the machine and PostgreSQL reached in the same run."""
    part = next(part for part in result["parts"] if part["name"] == "append")
    figures = {row["name"]: row["figures"] for table in part["tables"] for row in table["rows"]}
    rates = {name: row for name, row in figures.items() if "events_per_second" in row}
    copies = [name for name in rates if name.startswith("COPY ")]
    rows = [
        {
            "what": name,
            "events/s": figure_text(row["events_per_second"], ",.0f"),
            **{
                f"of {copy.replace(' BINARY', '')}": figure_text(row[f"vs {copy}"], ".2f")
                for copy in copies
                if f"vs {copy}" in row
            },
        }
        for name, row in rates.items()
    ]
    commit = f"{figures['copy_events_per_commit']['value']['value']:,.0f}"
    text = f"`{result['command']}`: {part['title']}. COPY commits every {commit} rows."
    return f"{text}\n\n{markdown_table(rows)}"


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
  python3 scripts/results_table.py results/2026-11-22 --readme results/2026-11-22/README.md
  python3 scripts/results_table.py results/20* --summary --readme README.md
  python3 scripts/results_table.py results/20* --overview --readme docs/benchmarks.md
  python3 scripts/results_table.py results/20* --costs --readme docs/performance.md
  python3 scripts/results_table.py results/2026-11-22 --workload compare --workload fan-out""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", type=Path, nargs="+", help="a set of kept results: folders with a result.json each"
    )
    parser.add_argument("--workload", action="append", default=[], help="only this workload; may be repeated")
    parser.add_argument(
        "--overview",
        action="store_true",
        help="only the rows of the main job, of the first set that has them, and the comparisons of systems",
    )
    parser.add_argument("--costs", action="store_true", help="only what an event costs, from the limits")
    parser.add_argument(
        "--summary",
        action="store_true",
        help="only the rows of the main job, of the first set that has them, and of tuned systems,"
        " of the set with the most",
    )
    parser.add_argument("--readme", type=Path, help="file to write the tables to, between its markers")
    parsed = parser.parse_args(arguments)
    newest_first = sorted(parsed.folder, reverse=True)
    seen_from = parsed.readme.parent if parsed.readme else Path()
    if parsed.overview:
        text = overview(newest_first)
    elif parsed.summary:
        text = summary(newest_first)
    elif parsed.costs:
        text = costs([result for folder in newest_first for result in read(folder)])
    elif len(parsed.folder) > 1:
        parser.error("several sets need --overview, --summary or --costs")
    else:
        text = markdown(parsed.folder[0], seen_from, parsed.workload)
    if not text:
        parser.error(f"there is no such result.json in {', '.join(map(str, parsed.folder))}")
    if parsed.readme:
        parsed.readme.write_text(replace(parsed.readme.read_text(), text))
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
