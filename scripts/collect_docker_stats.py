#!/usr/bin/env python3
"""Writes CSV and plots of the resource usage of containers: see --help."""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmark.errors import WrongInput
from docker_stats.plots import draw
from docker_stats.reading import Sample, read

EXAMPLES = """\
examples:
  python3 scripts/collect_docker_stats.py results/cloud/stats/*.txt
  docker stats --format json > stats.jsonl; python3 scripts/collect_docker_stats.py stats.jsonl --out plots

exit codes: 0 written, 2 wrong input
"""
COLUMNS = (
    "time",
    "host",
    "container",
    "cpu_cores",
    "memory_mb",
    "received_mb",
    "sent_mb",
    "read_mb",
    "written_mb",
)


def write_csv(file: Path, samples: Sequence[Sample]) -> None:
    with file.open("w", newline="") as output:
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(COLUMNS)
        for sample in samples:
            time = sample.time.strftime("%Y-%m-%dT%H:%M:%SZ") if sample.time else ""
            figures = (
                sample.cpu_cores,
                sample.memory_mb,
                sample.received_mb,
                sample.sent_mb,
                sample.read_mb,
                sample.written_mb,
            )
            writer.writerow([time, sample.host, sample.container, *(f"{figure:.3f}" for figure in figures)])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Reads files of collect_docker_stats.bash, or lines of `docker stats --format json`, and "
        "writes docker-stats.csv and, where matplotlib is installed, docker-stats-*.png. A file's name "
        "without its ending is the host's.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="folder for the output [the first file's]")
    options = parser.parse_args(arguments)
    out: Path = options.out or options.files[0].parent
    try:
        samples = [sample for file in options.files for sample in read(file)]
    except (WrongInput, OSError) as e:
        print(e, file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    table = out / "docker-stats.csv"
    write_csv(table, samples)
    print(f"{len(samples)} samples: {table}")
    try:
        plots = draw(samples, out)
    except ModuleNotFoundError:
        print("No plots: matplotlib is not installed.")
        return 0
    for plot in plots:
        print(plot)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
