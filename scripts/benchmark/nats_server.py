"""A NATS server with JetStream for comparisons."""

from collections.abc import Mapping
from pathlib import Path

from benchmark import pypi
from benchmark.java import clean_environment
from benchmark.local_ports import HOST, free_port, is_open
from benchmark.processes import Child
from benchmark.run_context import RunContext

START_SECONDS = 60
STOP_SECONDS = 20


def settings(folder: Path, port: int, sync: str) -> str:
    """Returns the configuration; with sync `always`, each event is flushed before its answer."""
    lines = [
        f"listen: {HOST}:{port}",
        "jetstream {",
        f'  store_dir: "{folder / "data"}"',
        *(["  sync_interval: always"] if sync == "always" else []),
        "}",
    ]
    return "\n".join(lines) + "\n"


def start(context: RunContext, sync: str) -> tuple[Child, Mapping[str, str]]:
    """Starts the server; returns the process and the environment for its clients."""
    program = pypi.require_servers(context.root) / "bin/nats-server"
    print(f"Starting NATS with sync {sync}...", flush=True)
    folder = context.temporary / "nats"
    folder.mkdir()
    port = free_port()
    configuration = folder / "nats.conf"
    configuration.write_text(settings(folder, port, sync))
    server = context.processes.start(
        "nats", [str(program), "--config", str(configuration)], clean_environment(), STOP_SECONDS
    )
    context.processes.wait_until(lambda: is_open(port), "Starting NATS", START_SECONDS, [server])
    return server, {"NATS_URL": f"nats://{HOST}:{port}", "NATS_SYNC": sync}
