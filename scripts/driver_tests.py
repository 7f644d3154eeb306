"""Tests drivers against real servers: see run_driver_tests.bash --help."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark import kafka_server
from benchmark.build import MAVEN
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.java import clean_environment
from benchmark.processes import Processes
from benchmark.run_context import FAILED, WRONG_INPUT, RunContext
from benchmark.servers import Environment, start_servers
from benchmark.signals import Signals

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Test:
    """Test classes, the server they need, and the module they are in."""

    classes: str
    environment: Environment
    module: str = "runner/drivers"


TESTS = {
    "kafka": Test("KafkaIT,KafkaTunedIT", Environment("kafka", 0, "none", {"fsync": "false"})),
    "kafka-connect": Test(
        "ConnectWorkerIT", Environment("kafka", 0, "none", {"fsync": "false"}), "eventsql/kafka-connect"
    ),
    "nats": Test("NatsIT,NatsTunedIT", Environment("nats", 0, "none", {"sync": "interval"})),
    "pgmq": Test("PgmqIT,PgmqTunedIT", Environment("postgres", 1, "none", {"pgmq": "true"})),
    "redis": Test("RedisIT,RedisTunedIT", Environment("redis", 0, "none", {"appendfsync": "everysec"})),
    "pgq": Test("PgQIT,PgQTunedIT", Environment("postgres-pgq", 1, "none", {})),
}


def test(context: RunContext, names: Sequence[str], maven_arguments: Sequence[str]) -> int:
    """Starts the servers, tests, and returns Maven's exit status."""
    variables: dict[str, str] = {}
    started: list[Environment] = []
    for name in names:
        environment = TESTS[name].environment
        if environment not in started:
            variables |= start_servers(context, environment, 0).variables
            started.append(environment)
    if "kafka-connect" in names:
        libraries = kafka_server.require_libraries(context.root, kafka_server.CONNECT)
        variables["KAFKA_CONNECT_LIBRARIES"] = str(libraries)
    options = [
        *("-q", "-B", "-ntp", "-Pquick", "-pl", ",".join(sorted({TESTS[name].module for name in names}))),
        *("-am", "verify", "-Dtest=NONE", f"-Dit.test={','.join(TESTS[name].classes for name in names)}"),
        *("-Dsurefire.failIfNoSpecifiedTests=false", "-Dfailsafe.failIfNoSpecifiedTests=false"),
    ]
    command = ["bash", "-c", MAVEN, "maven", *options, *maven_arguments]
    return subprocess.run(command, cwd=ROOT, env={**clean_environment(), **variables}, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="run_driver_tests.bash",
        description="Starts Kafka, Redis, NATS, and PostgreSQL with PgQ and pgmq on loopback, and tests their"
        " drivers, and the source connector in a worker of Kafka Connect. Options such as -Dname=value are"
        " passed to Maven.",
        epilog="Exit code: 0 all good, 1 something failed, 2 wrong input or a server is not available here.",
    )
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=f"{', '.join(TESTS)} (default: all)")
    maven_arguments = [argument for argument in arguments if argument.startswith("-D")]
    given = [argument for argument in arguments if not argument.startswith("-D")]
    names = parser.parse_args(given).drivers or list(TESTS)
    signals = Signals()
    try:
        unknown = [name for name in names if name not in TESTS]
        if unknown:
            raise WrongInput(f"no such driver: {', '.join(unknown)}")
        # In this order: the server with PgQ replaces the earlier one, and pgmq can be created in it, too.
        names = [name for name in TESTS if name in names]
        signals.install()
        with tempfile.TemporaryDirectory(prefix="eventsql-drivers-", ignore_cleanup_errors=True) as folder:
            temporary = Path(folder)
            with Processes(signals, temporary, ROOT) as processes:
                context = RunContext(ROOT, temporary, temporary, processes)
                return FAILED if test(context, names, maven_arguments) else 0
    except WrongInput as e:
        print(e, file=sys.stderr)
        return WRONG_INPUT
    except Failure as e:
        print(f"The servers failed: {e}", file=sys.stderr)
        return FAILED
    except Interrupted as e:
        return 128 + e.signal_number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
