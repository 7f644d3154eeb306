"""The servers a run is measured against."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark import kafka_server, pgq_server, redis_server
from benchmark.errors import WrongInput
from benchmark.processes import Child
from benchmark.workplace import Workplace

STANDBYS = ("none", "asynchronous", "synchronous", "quorum")


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
    """Starts what the environment says.

    Raises WrongInput for what is not known or cannot be had here, Failure for what does not start.
    """
    require_known(environment)
    match environment.server:
        case "postgres":
            servers = _start_postgres(place, environment, recycled_wal_mb)
        case "postgres-pgq":
            servers = _single(*pgq_server.start(place), "database-0")
        case "kafka":
            fsync = environment.server_options.get("fsync", "false")
            servers = _single(*kafka_server.start(place, fsync), "kafka")
        case "redis":
            appendfsync = environment.server_options.get("appendfsync", "everysec")
            servers = _single(*redis_server.start(place, appendfsync), "redis")
        case _:
            servers = Servers({}, {}, [])
    said = {"EVENTSQL_SERVER": environment.server, "EVENTSQL_STANDBYS": environment.standbys}
    return Servers({**servers.variables, **said}, servers.process_ids, servers.needed)


# What each server can be told, and the values.
OPTIONS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "postgres": {},
    "postgres-pgq": {},
    "kafka": {"fsync": ("true", "false")},
    "redis": {"appendfsync": ("always", "everysec")},
    "none": {},
}
DATABASES_MAX = {"postgres": 64, "postgres-pgq": 1}


def require_known(environment: Environment) -> None:
    """Raises WrongInput, naming what is wrong and the limit."""
    server = environment.server
    if server not in OPTIONS:
        raise WrongInput(f"server must be one of {', '.join(OPTIONS)}, but is {server}")
    if environment.standbys not in STANDBYS:
        raise WrongInput(f"standbys must be one of {', '.join(STANDBYS)}, but is {environment.standbys}")
    if environment.standbys != "none" and server != "postgres":
        raise WrongInput(f"there are no standbys of {server}")
    most = DATABASES_MAX.get(server)
    if most is not None and not 1 <= environment.databases <= most:
        raise WrongInput(
            f"databases of {server} must be between 1 and {most}, but is {environment.databases}"
        )
    for name, value in environment.server_options.items():
        known = OPTIONS[server].get(name)
        if known is None:
            raise WrongInput(f"{server} has no option {name}")
        if value not in known:
            raise WrongInput(f"{name} of {server} must be one of {', '.join(known)}, but is {value}")


def _start_postgres(place: Workplace, environment: Environment, recycled_wal_mb: int) -> Servers:
    databases, variables = place.start_databases(environment.databases, recycled_wal_mb, environment.standbys)
    process_ids = {}
    for number, server in enumerate(json.loads((place.temporary / "databases.json").read_text())["servers"]):
        process_ids[f"database-{number}"] = int(server["pid"])
        for standby in server["standbys"]:
            process_ids[f"database-{number}-{standby['name']}"] = int(standby["pid"])
    return Servers(variables, process_ids, [databases])


def _single(child: Child, variables: Mapping[str, str], name: str) -> Servers:
    return Servers(variables, {name: child.process.pid}, [child])
