#!/usr/bin/env python3
"""Prepares measured runs for the repository: see --help."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

# By name: other tables may be all that there is of a measurement.
DERIVED = (
    "report.html",
    "comparison.html",
    "series.csv",
    "resources.csv",
    "trials.csv",
    "trials.jsonl",
    "docker-stats.csv",
)


# Of a run that was repeated: its percentiles are in the phases.
OF_EACH_ROUND = ("histograms",)
ROUND = "round-"

# Significant digits of what is sampled each second: more than any picture or table shows. Whole numbers stay.
DIGITS = {"resources": 4, "series": 6}


def compact(text: str, without: Sequence[str] = ()) -> str:
    """Returns the JSON object with a line for each field, so that a difference still shows which."""
    fields = {
        name: _rounded(value, DIGITS[name]) if name in DIGITS else value
        for name, value in json.loads(text).items()
        if name not in without
    }
    lines = [
        f"{json.dumps(name)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
        for name, value in fields.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rounded(value: object, digits: int) -> object:
    """Returns the value with numbers rounded to digits, at most to whole ones, which have no point."""
    if isinstance(value, dict):
        return {name: _rounded(of_name, digits) for name, of_name in value.items()}
    if isinstance(value, list):
        return [_rounded(element, digits) for element in value]
    if isinstance(value, float):
        rounded = float(f"{value:.{digits}g}") if abs(value) < 10**digits else float(round(value))
        return int(rounded) if rounded.is_integer() else rounded
    return value


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Rewrites each result.json below FOLDER with one line for each field, and deletes the"
        " files derived from it: HTML, CSV, and the lines of trials. scripts/draw_report.bash creates them"
        " again. Of runs that were repeated, histograms are left out, and what is sampled each second is"
        f" rounded to {DIGITS['series']} digits, that of resources to {DIGITS['resources']}."
        " Pictures stay: delete"
        " those that no document shows.",
        epilog="Example:\n  python3 scripts/compact_results.py results/2026-11-22",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    results = sorted(folder.rglob("result.json"))
    if not results:
        parser.error(f"there is no result.json in {folder}")
    for file in results:
        is_of_round = file.parent.parent.name.startswith(ROUND)
        without = OF_EACH_ROUND if is_of_round else ()
        file.write_text(compact(file.read_text(encoding="utf-8"), without), encoding="utf-8")
    for name in DERIVED:
        for file in folder.rglob(name):
            file.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
