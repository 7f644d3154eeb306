"""A Redis server for comparisons."""

from collections.abc import Mapping
from pathlib import Path

from benchmark.debian import require_packages
from benchmark.java import clean_environment
from benchmark.local_ports import HOST, free_port, is_open
from benchmark.processes import Child
from benchmark.run_context import RunContext

PROGRAM = Path("/usr/bin/redis-server")
START_SECONDS = 60
STOP_SECONDS = 20


def command(folder: Path, port: int, appendfsync: str) -> list[str]:
    """Returns the command of a server that writes only its append-only file."""
    return [
        str(PROGRAM),
        *("--bind", HOST, "--port", str(port), "--dir", str(folder), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", appendfsync),
    ]


def start(context: RunContext, appendfsync: str) -> tuple[Child, Mapping[str, str]]:
    """Starts the server; returns the process and the environment for its clients."""
    require_packages(PROGRAM, ["redis-server"])
    print(f"Starting Redis with appendfsync {appendfsync}...", flush=True)
    folder = context.temporary / "redis"
    folder.mkdir()
    port = free_port()
    server = context.processes.start(
        "redis", command(folder, port, appendfsync), clean_environment(), STOP_SECONDS
    )
    context.processes.wait_until(lambda: is_open(port), "Starting Redis", START_SECONDS, [server])
    return server, {"REDIS_HOST": HOST, "REDIS_PORT": str(port), "REDIS_APPENDFSYNC": appendfsync}
