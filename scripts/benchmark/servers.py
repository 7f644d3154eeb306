"""The servers that a run measures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmark import kafka_server, nats_server, pgq_server, pypi, redis_server
from benchmark.errors import WrongInput
from benchmark.processes import Child
from benchmark.run_context import RunContext

STANDBYS = ("none", "asynchronous", "synchronous", "quorum")


@dataclass(frozen=True)
class Environment:
    """The servers that a run needs, from `runner plan`."""

    server: str
    databases: int
    standbys: str
    server_options: Mapping[str, str]
    postgres_settings: Sequence[str] = ()
    # Whether the role of the clients may read what all processes do, and may start checkpoints.
    monitoring: bool = False


@dataclass(frozen=True)
class Servers:
    """Running servers: variables for the runner, processes to sample, and children that must keep running."""

    variables: Mapping[str, str]
    process_ids: Mapping[str, int]
    needed: Sequence[Child]


def start_servers(context: RunContext, environment: Environment, recycled_wal_mb: int) -> Servers:
    """Starts the servers of the environment.

    Raises WrongInput for unknown or unavailable ones, Failure for one that does not start.
    """
    require_known(environment)
    match environment.server:
        case "postgres":
            servers = _start_postgres(context, environment, recycled_wal_mb)
        case "postgres-pgq":
            servers = _single(*pgq_server.start(context), "database-0")
        case "kafka":
            fsync = environment.server_options.get("fsync", "false")
            servers = _single(*kafka_server.start(context, fsync), "kafka")
        case "redis":
            appendfsync = environment.server_options.get("appendfsync", "everysec")
            servers = _single(*redis_server.start(context, appendfsync), "redis")
        case "nats":
            sync = environment.server_options.get("sync", "interval")
            servers = _single(*nats_server.start(context, sync), "nats")
        case _:
            servers = Servers({}, {}, [])
    described = {"EVENTSQL_SERVER": environment.server, "EVENTSQL_STANDBYS": environment.standbys}
    return Servers({**servers.variables, **described}, servers.process_ids, servers.needed)


# The options of each server and their values.
OPTIONS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "postgres": {"pgmq": ("true", "false")},
    "postgres-pgq": {},
    "kafka": {"fsync": ("true", "false")},
    "redis": {"appendfsync": ("always", "everysec")},
    "nats": {"sync": ("always", "interval")},
    "none": {},
}
DATABASES_MAX = {"postgres": 64, "postgres-pgq": 1}


def require_known(environment: Environment) -> None:
    """Raises WrongInput, naming the wrong value and the limit."""
    server = environment.server
    if server not in OPTIONS:
        raise WrongInput(f"server must be one of {', '.join(OPTIONS)}, but is {server}")
    if environment.standbys not in STANDBYS:
        raise WrongInput(f"standbys must be one of {', '.join(STANDBYS)}, but is {environment.standbys}")
    if environment.standbys != "none" and server != "postgres":
        raise WrongInput(f"{server} has no standbys")
    databases_max = DATABASES_MAX.get(server)
    if databases_max is not None and not 1 <= environment.databases <= databases_max:
        raise WrongInput(
            f"databases of {server} must be between 1 and {databases_max}, but is {environment.databases}"
        )
    for name, value in environment.server_options.items():
        known = OPTIONS[server].get(name)
        if known is None:
            raise WrongInput(f"{server} has no option {name}")
        if value not in known:
            raise WrongInput(f"{name} of {server} must be one of {', '.join(known)}, but is {value}")


def _start_postgres(context: RunContext, environment: Environment, recycled_wal_mb: int) -> Servers:
    databases, variables = context.start_databases(
        environment.databases,
        recycled_wal_mb,
        environment.standbys,
        environment.postgres_settings,
        environment.monitoring,
    )
    process_ids = {}
    for number, server in enumerate(
        json.loads((context.temporary / "databases.json").read_text())["servers"]
    ):
        process_ids[f"database-{number}"] = int(server["pid"])
        for standby in server["standbys"]:
            process_ids[f"database-{number}-{standby['name']}"] = int(standby["pid"])
    if environment.server_options.get("pgmq") == "true":
        variables = {**variables, **_pgmq(context)}
    return Servers(variables, process_ids, [databases])


def _pgmq(context: RunContext) -> Mapping[str, str]:
    """Returns the file that creates pgmq's schema, which its driver executes, and its version."""
    folder = pypi.require_servers(context.root) / "pgmq/sql"
    return {"PGMQ_SQL": str(folder / "pgmq.sql"), "PGMQ_VERSION": (folder / "VERSION").read_text().strip()}


def _single(child: Child, variables: Mapping[str, str], name: str) -> Servers:
    return Servers(variables, {name: child.process.pid}, [child])
