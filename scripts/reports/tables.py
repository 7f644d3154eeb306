"""The tables that the runner writes as CSV, from result.json."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.result import Result

Columns = Mapping[str, Sequence[Any]]


def write_missing(result: Result) -> None:
    """Writes series.csv, resources.csv and trials.csv of a run that was kept without them."""
    for name, columns in _tables(result.data).items():
        file = result.folder / name
        if columns and not file.exists():
            _write(file, columns)


def _tables(data: Mapping[str, Any]) -> Mapping[str, Columns]:
    series = data.get("series") or {}
    resources = data.get("resources") or {}
    trials = data.get("trials") or []
    used = resources.get("columns")
    return {
        "series.csv": {name: values for name, values in series.items() if name != "interval_seconds"},
        "resources.csv": {"t": resources["t"], **used} if used else {},
        "trials.csv": {name: [trial[name] for trial in trials] for name in trials[0]} if trials else {},
    }


def _write(file: Path, columns: Columns) -> None:
    with file.open("w", newline="") as output:
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
