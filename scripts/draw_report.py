"""Draws measured runs: see draw_report.bash --help."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reports import comparison_page, run_page
from reports.order import natural_order
from reports.result import NoReport, Result


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="draw_report.bash",
        description="Draws report.html and plots (PNG) into the folder of each run, from its result.json, and"
        " writes series.csv, resources.csv and trials.csv where they are missing. For several runs, or a"
        " folder that holds runs, also draws comparison.html: into that folder, or that of the first run.",
        epilog="""Examples:
  bash scripts/draw_report.bash results/local/2026-11-22T10-44-31Z
  bash scripts/draw_report.bash results/2026-11-22

Exit codes: 0 drawn; 1 a folder has nothing to draw; 2 wrong usage.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path)
    parser.add_argument("--comparison-only", action="store_true", help="do not draw the runs' own pages")
    parsed = parser.parse_args(arguments)

    runs, sets = find_runs(parsed.folders)
    if not runs:
        print(f"there is no result.json in {', '.join(map(str, parsed.folders))}", file=sys.stderr)
        return 1
    status = 0
    drawn = []
    for run in runs:
        try:
            if not parsed.comparison_only:
                print(f"Report: {run_page.write(run)}", flush=True)
            # Parts are not comparable with loads.
            if not Result.read(run).parts:
                drawn.append(run)
        except NoReport as e:
            print(f"No report: {e}", file=sys.stderr)
            # A run of a set may be of another kind; a run given by its own folder must be drawn.
            status = status if run not in parsed.folders else 1
    if drawn and (len(runs) > 1 or sets):
        out = sets[0] if sets else runs[0].resolve().parent
        print(f"Comparison: {comparison_page.write(drawn, out)}", flush=True)
    return status


def find_runs(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Returns the folders of runs, and those of the given folders that contain runs at any depth."""
    runs: list[Path] = []
    sets: list[Path] = []
    for folder in folders:
        if (folder / "result.json").exists():
            runs.append(folder)
            continue
        inside = sorted((file.parent for file in folder.rglob("result.json")), key=natural_order)
        if inside:
            sets.append(folder)
            runs += inside
    return runs, sets


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
