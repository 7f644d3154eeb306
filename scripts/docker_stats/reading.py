"""Reads the output of collect_docker_stats.bash, and lines of `docker stats --format json`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmark.errors import WrongInput

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Docker prints memory in powers of 1024 and traffic in powers of 1000.
UNITS = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
MB = 1e6
COLUMN_GAP = re.compile(r"\s{2,}")
COLUMNS = 7


@dataclass(frozen=True)
class Sample:
    """One container, or the whole `machine`, at one moment. MB are 1,000,000 bytes.

    Traffic counts from its start. Of a container on the host's network Docker counts none.
    """

    time: datetime | None
    host: str
    container: str
    cpu_cores: float
    memory_mb: float
    received_mb: float
    sent_mb: float
    read_mb: float
    written_mb: float


def read(file: Path) -> Iterator[Sample]:
    """Reads all samples of a file; raises WrongInput naming a malformed line.

    The last line may be truncated if the collector was killed.
    """
    time: datetime | None = None
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if TIME.fullmatch(text):
            time = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        elif text and not text.startswith("NAME"):
            try:
                sample = _sample(time, file.stem, text)
                if sample is not None:
                    yield sample
            except (ValueError, KeyError) as e:
                if number == len(lines):
                    return
                raise WrongInput(f"{file}:{number}: not a line of docker stats: {text!r}") from e


def _sample(time: datetime | None, host: str, text: str) -> Sample | None:
    """The sample of a line; None where Docker has no figures: the container has just started or ended."""
    if text.startswith("{"):
        fields = json.loads(text)
        name, cpu, memory = fields["Name"], fields["CPUPerc"], fields["MemUsage"]
        network, disk = fields["NetIO"], fields["BlockIO"]
    else:
        columns = COLUMN_GAP.split(text)
        if len(columns) != COLUMNS:
            raise ValueError(f"{len(columns)} columns")
        name, cpu, memory, _, network, disk, _ = columns
    if cpu == "--":
        return None
    received, sent = _pair(network)
    read_bytes, written = _pair(disk)
    return Sample(
        time,
        host,
        name,
        float(cpu.removesuffix("%")) / 100,
        _pair(memory)[0],
        received,
        sent,
        read_bytes,
        written,
    )


def _pair(text: str) -> tuple[float, float]:
    """Both sides of "1.5MiB / 2GiB", in MB."""
    first, second = (_megabytes(part) for part in text.split(" / "))
    return first, second


def _megabytes(text: str) -> float:
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", text.strip())
    if match is None:
        raise ValueError(f"no amount: {text!r}")
    return float(match[1]) * UNITS[match[2]] / MB
