"""Shows kept results as the README's table, or puts it there: see --help."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- results: written by scripts/results_table.py -->"
END = "<!-- results end -->"


def read(folder: Path) -> list[dict[str, Any]]:
    """All results in the folder's folders, in the order of their names."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*/result.json"))]


def table(results: Sequence[dict[str, Any]]) -> str:
    """Markdown of the results: a row for each run, then what the limits benchmark found, then the machine."""
    runs = [result for result in results if "publish_rate" in result]
    limits = [result for result in results if "append" in result]
    lines = [
        "| command | published and consumed | publish p50 / p99 | publish to handler p50 / p99 |",
        "|---|---:|---:|---:|",
        *(_row(result) for result in runs),
        "",
        *(_ratios(result) for result in limits),
        _machine(results),
    ]
    return "\n".join(lines)


def _row(result: dict[str, Any]) -> str:
    if not result["passed"]:
        raise ValueError(f"{result['command']} did not pass")
    command = result["command"].replace(" bash scripts/run_local_benchmark.bash", "")
    return (
        f"| `{command}` | {result['consume_rate']:,.0f}/s"
        f" | {_latency(result['publish_latency_ms'])} | {_latency(result['end_to_end_latency_ms'])} |"
    )


def _latency(percentiles: dict[str, float]) -> str:
    return f"{percentiles['p50']:,.1f} / {percentiles['p99']:,.1f} ms"


def _ratios(result: dict[str, Any]) -> str:
    append = result["append"]
    copy = append["copy"][0]
    ratios = ", ".join(
        f"{library['name']} {library['ratio_to_copy'][0]:.0%}" for library in append["library"]
    )
    return (
        f"Of a plain binary COPY into the same tables over one connection,"
        f" {copy['events_per_second']:,.0f} rows/s committed every {append['copy_events_per_commit']:,} rows"
        f" in the same run (`{result['command']}`, without a consumer), the library reaches: {ratios}.\n"
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


def replace(readme: str, markdown: str) -> str:
    """The README with the table between its marks."""
    begin = readme.index(BEGIN) + len(BEGIN)
    end = readme.index(END)
    return f"{readme[:begin]}\n{markdown}\n{readme[end:]}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="""Examples:
  python3 scripts/results_table.py results/2026-11-21
  python3 scripts/results_table.py results/2026-11-21 --readme README.md""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a set of kept results: folders with a result.json each")
    parser.add_argument("--readme", type=Path, help="file to write the table to, between its marks")
    parsed = parser.parse_args(arguments)
    results = read(parsed.folder)
    if not results:
        parser.error(f"there is no */result.json in {parsed.folder}")
    markdown = table(results)
    if parsed.readme:
        parsed.readme.write_text(replace(parsed.readme.read_text(), markdown))
    else:
        print(markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
