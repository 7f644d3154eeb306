"""The servers a run is measured against."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark.errors import WrongInput
from benchmark.processes import Child
from benchmark.workplace import Workplace


@dataclass(frozen=True)
class Environment:
    """What a run needs, as `runner plan` says it."""

    server: str
    databases: int
    standbys: str
    server_options: Mapping[str, str]


@dataclass(frozen=True)
class Servers:
    """Running servers: how the runner finds them, what to sample, and what must go on running."""

    variables: Mapping[str, str]
    process_ids: Mapping[str, int]
    needed: Sequence[Child]


def start_servers(place: Workplace, environment: Environment, recycled_wal_mb: int) -> Servers:
    """Starts what the environment says; raises WrongInput for what is not known."""
    if environment.server != "postgres" or environment.standbys != "none":
        raise WrongInput(f"there is no server {environment.server} with standbys {environment.standbys}")
    databases, variables = place.start_databases(environment.databases, recycled_wal_mb)
    said = json.loads((place.temporary / "databases.json").read_text())["servers"]
    process_ids = {f"database-{number}": int(server["pid"]) for number, server in enumerate(said)}
    return Servers(variables, process_ids, [databases])
