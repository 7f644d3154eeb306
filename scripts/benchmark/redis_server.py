"""Redis, to compare with."""

from collections.abc import Mapping
from pathlib import Path

from benchmark.debian import require_packages
from benchmark.java import clean_environment
from benchmark.local_ports import HOST, free_port, is_open
from benchmark.processes import Child
from benchmark.workplace import Workplace

PROGRAM = Path("/usr/bin/redis-server")
START_SECONDS = 60
STOP_SECONDS = 20


def command(folder: Path, port: int, appendfsync: str) -> list[str]:
    """A server whose append-only file is all that it writes."""
    return [
        str(PROGRAM),
        *("--bind", HOST, "--port", str(port), "--dir", str(folder), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", appendfsync),
    ]


def start(place: Workplace, appendfsync: str) -> tuple[Child, Mapping[str, str]]:
    """Starts it; returns the process and the environment that says where and how it runs."""
    require_packages(PROGRAM, ["redis-server"])
    print(f"Starting Redis with appendfsync {appendfsync}...", flush=True)
    folder = place.temporary / "redis"
    folder.mkdir()
    port = free_port()
    server = place.processes.start(
        "redis", command(folder, port, appendfsync), clean_environment(), STOP_SECONDS
    )
    place.processes.wait_until(lambda: is_open(port), "Starting Redis", START_SECONDS, [server])
    return server, {"REDIS_HOST": HOST, "REDIS_PORT": str(port), "REDIS_APPENDFSYNC": appendfsync}
