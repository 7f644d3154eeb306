"""A Kafka broker for comparisons."""

import base64
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from benchmark.build import MAVEN
from benchmark.errors import Failure
from benchmark.java import clean_environment, java
from benchmark.local_ports import HOST, free_port, is_open
from benchmark.processes import Child
from benchmark.run_context import RunContext

BROKER = Path("runner/kafka-broker")
CONNECT = Path("runner/kafka-connect")
START_SECONDS = 120
STOP_SECONDS = 30
FORMAT_SECONDS = 120


def settings(folder: Path, port: int, controller_port: int, fsync: str) -> str:
    """Returns the configuration of one node, its own controller; with fsync, each batch is flushed."""
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@{HOST}:{controller_port}",
        f"listeners=PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        f"advertised.listeners=PLAINTEXT://{HOST}:{port}",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={folder / 'data'}",
        "default.replication.factor=1",
        "offsets.topic.replication.factor=1",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "group.initial.rebalance.delay.ms=0",
    ]
    if fsync == "true":
        lines.append("log.flush.interval.messages=1")
    return "\n".join(lines) + "\n"


def version(libraries: Path) -> str:
    """Returns the broker's version, from the name of its jar."""
    jars = sorted(libraries.glob("kafka-clients-*.jar"))
    if not jars:
        raise Failure(f"no Kafka in {libraries}")
    return jars[-1].stem.removeprefix("kafka-clients-")


def require_libraries(root: Path, project: Path = BROKER) -> Path:
    """Downloads the jars that a project declares unless all exist; returns their folder."""
    libraries = root / project / "target/lib"
    pom = root / project / "pom.xml"
    # Written last.
    stamp = libraries / pom.name
    if stamp.is_file() and stamp.read_text() == pom.read_text():
        return libraries
    print(f"Downloading {project.name}...", flush=True)
    # Maven keeps files that exist: those copied in part, and those of other versions.
    shutil.rmtree(libraries, ignore_errors=True)
    command = ["bash", "-c", MAVEN, "maven", "-q", "-B", "-ntp", "-f", str(pom), "package"]
    status = subprocess.run(command, cwd=root, check=False).returncode
    if status != 0:
        raise Failure(f"{project.name} could not be downloaded: Maven ended with status {status}")
    stamp.write_text(pom.read_text())
    return libraries


def start(context: RunContext, fsync: str) -> tuple[Child, Mapping[str, str]]:
    """Starts the broker; returns the process and the environment for its clients."""
    libraries = require_libraries(context.root)
    print(f"Starting Kafka {'with' if fsync == 'true' else 'without'} fsync...", flush=True)
    folder = context.temporary / "kafka"
    folder.mkdir()
    port = free_port()
    configuration = folder / "server.properties"
    configuration.write_text(settings(folder, port, free_port(), fsync))
    class_path = ("-cp", f"{libraries}/*")
    _format(context, configuration, [*java(*class_path), "kafka.tools.StorageTool"])
    command = [*java("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", *class_path), "kafka.Kafka", str(configuration)]
    server = context.processes.start("kafka", command, clean_environment(), STOP_SECONDS)
    context.processes.wait_until(lambda: is_open(port), "Starting Kafka", START_SECONDS, [server])
    return server, {
        "KAFKA_BOOTSTRAP_SERVERS": f"{HOST}:{port}",
        "KAFKA_FSYNC": fsync,
        "KAFKA_VERSION": version(libraries),
    }


def _format(context: RunContext, configuration: Path, tool: list[str]) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    child = context.processes.start(
        "kafka-format",
        [*tool, "format", f"--cluster-id={cluster}", f"--config={configuration}"],
        clean_environment(),
        STOP_SECONDS,
    )
    context.processes.wait_until(lambda: child.status is not None, "Formatting Kafka", FORMAT_SECONDS, [])
    if child.status != 0:
        raise Failure(f"Kafka's folder could not be formatted, see {child.log}")
