"""PostgreSQL with PgQ for comparisons."""

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmark.debian import require_packages
from benchmark.errors import Failure
from benchmark.java import clean_environment, database_environment
from benchmark.local_ports import HOST, free_port
from benchmark.processes import Child
from benchmark.run_context import RunContext

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
LIBRARY = Path("/usr/lib/postgresql/15/lib/pgq_lowlevel.so")
PACKAGES = ["postgresql-15", "postgresql-client-15", "postgresql-15-pgq3"]
SETTINGS = Path("events-db/postgresql.conf")
# PostgreSQL refuses to run as root.
USER = "postgres"
STEP_SECONDS = 120
START_SECONDS = 60
STOP_SECONDS = 30


def as_user() -> list[str]:
    """Returns the prefix of a command that root may not run."""
    if os.geteuid() != 0:
        return []
    # Changing the user resets the signal to send when the parent dies, so it is set again.
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--pdeathsig", "TERM"]


def settings(common: str, port: int, initialized: str = "") -> str:
    """Returns the configuration of all our databases, this one's address, and what initdb found to work."""
    own = f"\nlisten_addresses = '{HOST}'\nport = {port}\nunix_socket_directories = ''\n"
    # On some machines /dev/shm is closed to other users than root.
    memory = re.findall(r"^dynamic_shared_memory_type = \w+", initialized, re.MULTILINE)
    return common + own + "".join(f"{line}\n" for line in memory)


def start(context: RunContext) -> tuple[Child, Mapping[str, str]]:
    """Starts the server; returns the process and the environment for its clients."""
    require_packages(LIBRARY, PACKAGES)
    print("Starting PostgreSQL with PgQ...", flush=True)
    folder = _folder(context)
    admin_password = secrets.token_hex(16)
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(admin_password)
    if os.geteuid() == 0:
        shutil.chown(password_file, USER, USER)
    data = folder / "data"
    _run(
        [
            *as_user(),
            *(str(PROGRAMS / "initdb"), f"--pgdata={data}", "--username=postgres"),
            *(f"--pwfile={password_file}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
        ],
        "Initializing PostgreSQL's data folder",
        clean_environment(),
    )
    port = free_port()
    configuration = data / "postgresql.conf"
    common = (context.root / SETTINGS).read_text()
    configuration.write_text(settings(common, port, configuration.read_text()))
    command = [*as_user(), str(PROGRAMS / "postgres"), "-D", str(data)]
    server = context.processes.start("postgres-pgq", command, clean_environment(), STOP_SECONDS)
    ready = [str(PROGRAMS / "pg_isready"), "-q", "-h", HOST, "-p", str(port)]
    context.processes.wait_until(
        lambda: subprocess.run(ready, check=False).returncode == 0,
        "Starting PostgreSQL with PgQ",
        START_SECONDS,
        [server],
    )
    password = secrets.token_hex(16)
    _create_database(port, admin_password, password)
    server_address: dict[str, str | int] = {
        "host": HOST,
        "port": port,
        "database": "eventsql",
        "user": "eventsql",
        "password": password,
    }
    return server, database_environment([server_address])


def _folder(context: RunContext) -> Path:
    folder = context.temporary / "pgq"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        # Other users may traverse the folder, not list it.
        context.temporary.chmod(0o711)
        shutil.chown(folder, USER, USER)
    return folder


def _create_database(port: int, admin_password: str, password: str) -> None:
    statements = {
        "postgres": [
            f"CREATE ROLE eventsql LOGIN PASSWORD '{password}'",
            "CREATE DATABASE eventsql OWNER eventsql",
        ],
        "eventsql": ["CREATE EXTENSION pgq", "GRANT pgq_admin TO eventsql"],
    }
    environment = {**clean_environment(), "PGPASSWORD": admin_password}
    for database, commands in statements.items():
        psql = [str(PROGRAMS / "psql"), "-q", "-X", "-h", HOST, "-p", str(port), "-U", "postgres"]
        # By standard input, because every user of the machine can read a command line.
        text = "".join(f"{command};\n" for command in commands)
        _run([*psql, "-v", "ON_ERROR_STOP=1", "-d", database], "Creating the database", environment, text)


def _run(command: Sequence[str], what: str, environment: Mapping[str, str], text: str = "") -> None:
    result = subprocess.run(
        command,
        env=dict(environment),
        input=text,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS,
        check=False,
    )
    if result.returncode != 0:
        raise Failure(f"{what} failed: {result.stderr.strip()}")
