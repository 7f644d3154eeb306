"""The command line and the environment of child processes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.settings import VARIABLES


def java(*options: str) -> list[str]:
    """Returns the beginning of a command line."""
    home = os.environ.get("JAVA_HOME")
    return [str(Path(home) / "bin" / "java") if home else "java", *options]


def processors() -> int:
    """Returns the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clean_environment() -> dict[str, str]:
    """Returns the environment without the variables that this script sets for its children."""
    set_here = {
        v for v in os.environ if v.startswith("DB") and v.endswith(("_HOST", "_PORT", "_NAME", "_USER"))
    }
    set_here |= {v for v in os.environ if v.startswith("DB") and v.endswith(("_PASSWORD", "_URLS"))}
    set_here |= {
        "STREAM",
        "CONSUMER",
        "PAGE_EVENTS",
        "SERVER_PORT",
        "PORT_FILE",
        "APP_URL",
        "APP_URLS",
        "RUN_ID",
        "PROCESSES",
        "ONLY",
        "METRICS_PORT",
        "SERVER_ADDRESS",
        "WARMUP_MAX_SECONDS",
    }
    # What is meant of these is set explicitly, as a setting of the run.
    set_here |= {variable.name for variable in VARIABLES}
    return {name: value for name, value in os.environ.items() if name not in set_here}


def database_environment(servers: Sequence[Mapping[str, str | int]]) -> dict[str, str]:
    """Returns the variables with which app and runner connect to the databases, passwords included."""
    environment = {}
    for number, server in enumerate(servers):
        for variable, key in (
            ("HOST", "host"),
            ("PORT", "port"),
            ("NAME", "database"),
            ("USER", "user"),
            ("PASSWORD", "password"),
        ):
            environment[f"DB{number}_{variable}"] = str(server[key])
    return environment
