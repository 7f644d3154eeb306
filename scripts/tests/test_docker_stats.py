"""Reads the output of docker stats and writes it as CSV."""

import csv
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmark.errors import WrongInput
from docker_stats.reading import read
from tests.repository import SCRIPTS
from tests.waiting import WAIT_SECONDS

TABLE = """2026-11-21T22:00:00Z
NAME                 CPU %     MEM USAGE / LIMIT   MEM %     NET I/O     BLOCK I/O         PIDS
eventsql-events-db   125.50%   512MiB / 2GiB       25.00%    1kB / 2MB   4.1kB / 1.5GB     17

2026-11-21T22:00:10Z
NAME                 CPU %     MEM USAGE / LIMIT   MEM %     NET I/O     BLOCK I/O         PIDS
eventsql-events-db   0.00%     1GiB / 2GiB         50.00%    0B / 0B     0B / 0B           17
"""
JSON = (
    '{"BlockIO":"0B / 8.19kB","CPUPerc":"3.10%","Container":"4f","ID":"4f","MemPerc":"1.00%",'
    '"MemUsage":"10MiB / 1GiB","Name":"eventsql-app","NetIO":"1.2MB / 3GB","PIDs":"9"}\n'
)


def test_table_is_read_with_its_times(tmp_path: Path) -> None:
    file = tmp_path / "10.0.0.2.txt"
    file.write_text(TABLE)

    first, second = read(file)

    assert first.time == datetime(2026, 11, 21, 22, 0, 0, tzinfo=UTC)
    assert (first.host, first.container, first.cpu_cores) == ("10.0.0.2", "eventsql-events-db", 1.255)
    assert first.memory_mb == pytest.approx(536.870912)
    traffic = (first.received_mb, first.sent_mb, first.read_mb, first.written_mb)
    assert traffic == pytest.approx((0.001, 2.0, 0.0041, 1500.0))
    assert second.time == datetime(2026, 11, 21, 22, 0, 10, tzinfo=UTC)


def test_json_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "here.jsonl"
    file.write_text(JSON)

    (sample,) = read(file)

    assert (sample.time, sample.container) == (None, "eventsql-app")
    assert (sample.cpu_cores, sample.sent_mb, sample.written_mb) == pytest.approx((0.031, 3000.0, 0.00819))


def test_truncated_line_is_omitted_only_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "host.txt"
    file.write_text(TABLE + "eventsql-app   12.0")
    assert len(list(read(file))) == 2

    file.write_text("nonsense\n" + TABLE)
    with pytest.raises(WrongInput, match=r"host\.txt:1: not a line of docker stats: 'nonsense'"):
        list(read(file))


def test_container_without_figures_is_left_out(tmp_path: Path) -> None:
    """One that starts or ends while Docker is asked; a line of the machine follows it."""
    file = tmp_path / "host.txt"
    row = "eventsql-runner      --        -- / --             --        --          --                --\n"
    file.write_text(TABLE.replace("\n\n", f"\n{row}\n"))

    assert [sample.container for sample in read(file)] == ["eventsql-events-db", "eventsql-events-db"]


def test_csv_is_written_next_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "host.txt").write_text(TABLE)

    result = subprocess.run(
        [sys.executable, str(SCRIPTS / "collect_docker_stats.py"), str(tmp_path / "host.txt")],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )

    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "docker-stats.csv").open()))
    assert [row["cpu_cores"] for row in rows] == ["1.255", "0.000"]
    assert rows[0]["time"] == "2026-11-21T22:00:00Z"


def write_machine(folder: Path) -> None:
    """The counters of a machine with two networks, a bridge, a disk with a partition and a loop device."""
    (folder / "proc").mkdir()
    (folder / "proc/stat").write_text("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n")
    (folder / "proc/meminfo").write_text("MemTotal: 8000000 kB\nMemFree: 1 kB\nMemAvailable: 2000000 kB\n")
    (folder / "proc/net").mkdir()
    (folder / "proc/net/dev").write_text(
        "Inter-|   Receive  |  Transmit\n face |bytes  packets|bytes packets\n"
        "    lo: 9000000 1 0 0 0 0 0 0 9000000 1 0 0 0 0 0 0\n"
        "  eth0: 2000000 1 0 0 0 0 0 0 3000000 1 0 0 0 0 0 0\n"
        "  eth1:3000000 1 0 0 0 0 0 0 4000000 1 0 0 0 0 0 0\n"
        "docker0: 9000000 1 0 0 0 0 0 0 9000000 1 0 0 0 0 0 0\n"
    )
    (folder / "proc/diskstats").write_text(
        "254 0 vda 9 0 2000 9 9 0 4000 9 0 9 9\n254 1 vda1 9 0 2000 9 9 0 4000 9 0 9 9\n"
        "7 0 loop0 9 0 2000 9 9 0 4000 9 0 9 9\n"
    )
    for device in ("vda", "loop0"):
        (folder / f"sys/block/{device}").mkdir(parents=True)


@pytest.mark.parametrize("arguments", [["--bogus"], ["-f"], ["one", "two"]])
def test_unknown_argument_is_refused_and_writes_no_file(tmp_path: Path, arguments: list[str]) -> None:
    result = subprocess.run(
        ["bash", str(SCRIPTS / "collect_docker_stats.bash"), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )

    assert result.returncode == 2
    assert "(see --help)" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_collected_file_has_times_in_utc_and_is_read_again(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\ncat <<'EOF'\n{TABLE.split(chr(10), 1)[1].split(chr(10) * 2)[0]}\nEOF\n")
    docker.chmod(0o755)
    write_machine(tmp_path)
    file = tmp_path / "host.txt"
    collector = subprocess.Popen(
        ["bash", str(SCRIPTS / "collect_docker_stats.bash")],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "INTERVAL_SECONDS": "1",
            "TZ": "Asia/Tokyo",
            "PROC_FOLDER": str(tmp_path / "proc"),
            "SYS_FOLDER": str(tmp_path / "sys"),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert collector.stdout is not None
    lines: list[str] = []
    while lines.count("\n") < 2:
        lines.append(collector.stdout.readline())
    collector.terminate()
    assert collector.wait(timeout=WAIT_SECONDS) == 0
    collector.stdout.close()
    file.write_text("".join(lines))

    first, machine, second, _ = read(file)

    # Its containers are on the host's network, for which Docker counts nothing.
    assert (machine.container, machine.time) == ("machine", first.time)
    assert machine.memory_mb == pytest.approx(0.75 * 8_000_000 * 1024 / 1e6)
    assert (machine.received_mb, machine.sent_mb) == pytest.approx((5.0, 7.0))
    assert (machine.read_mb, machine.written_mb) == pytest.approx((1.024, 2.048))
    assert first.time is not None and second.time is not None
    # The first one is written late on a busy machine, the second one in time.
    assert 0 <= (second.time - first.time).total_seconds() < 60
    assert abs((datetime.now(UTC) - first.time).total_seconds()) < 600
