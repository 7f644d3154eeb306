"""Tests drivers against real servers: see run_driver_tests.bash --help."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmark.build import MAVEN
from benchmark.errors import Failure, Interrupted, WrongInput
from benchmark.java import clean_environment
from benchmark.processes import Processes
from benchmark.run_context import FAILED, WRONG_INPUT, RunContext
from benchmark.servers import Environment, start_servers
from benchmark.signals import Signals

ROOT = Path(__file__).resolve().parent.parent

# The tests of each driver, and the server it needs.
TESTS = {
    "kafka": ("KafkaIT,KafkaTunedIT", Environment("kafka", 0, "none", {"fsync": "false"})),
    "redis": ("RedisIT,RedisTunedIT", Environment("redis", 0, "none", {"appendfsync": "everysec"})),
    "pgq": ("PgQIT,PgQTunedIT", Environment("postgres-pgq", 1, "none", {})),
}


def test(context: RunContext, names: Sequence[str]) -> int:
    """Starts the servers, tests, and returns Maven's exit status."""
    variables: dict[str, str] = {}
    for name in names:
        variables |= start_servers(context, TESTS[name][1], 0).variables
    options = [
        *("-q", "-B", "-ntp", "-Pquick", "-pl", "runner/drivers", "-am", "verify", "-Dtest=NONE"),
        f"-Dit.test={','.join(TESTS[name][0] for name in names)}",
        *("-Dsurefire.failIfNoSpecifiedTests=false", "-Dfailsafe.failIfNoSpecifiedTests=false"),
    ]
    command = ["bash", "-c", MAVEN, "maven", *options]
    return subprocess.run(command, cwd=ROOT, env={**clean_environment(), **variables}, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="run_driver_tests.bash",
        description="Starts Kafka, Redis and PostgreSQL with PgQ on loopback, and tests their drivers.",
        epilog="Exit code: 0 all good, 1 something failed, 2 wrong input or a server is not available here.",
    )
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help=f"{', '.join(TESTS)} (default: all)")
    names = parser.parse_args(arguments).drivers or list(TESTS)
    signals = Signals()
    try:
        unknown = [name for name in names if name not in TESTS]
        if unknown:
            raise WrongInput(f"no such driver: {', '.join(unknown)}")
        signals.install()
        with tempfile.TemporaryDirectory(prefix="eventsql-drivers-", ignore_cleanup_errors=True) as folder:
            temporary = Path(folder)
            with Processes(signals, temporary, ROOT) as processes:
                return FAILED if test(RunContext(ROOT, temporary, temporary, processes), names) else 0
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
