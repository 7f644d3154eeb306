"""Replaces a container by the next version, and checks which one runs, also after an interruption."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.repository import SCRIPTS
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow

STAND_IN = SCRIPTS / "tests/stand_in_docker.py"
EVENTS_DB = SCRIPTS.parent / "events-db"

# Knows a name that the machine maps to itself.
GETENT = '#!/bin/sh\n[ "$2" = itself ] && set -- "$1" 127.0.1.1\necho "$2 STREAM"\n'
# A server that accepts the role, unless the test says how many databases have the name.
PSQL = """#!/bin/sh
[ -n "${DATABASES:-}" ] || exit 0
case "$*" in *--username=eventsql*) exit 2 ;; *) echo "$DATABASES" ;; esac
"""
# It does not listen at this address.
PG_ISREADY = """#!/bin/sh
case "$*" in *--host=10.0.0.9) echo '10.0.0.9:5432 - no response' && exit 2 ;; esac
"""


@dataclass(frozen=True)
class Machine:
    """A machine with Docker."""

    folder: Path

    def deploy(self, image: str, dies_after: int = 0) -> subprocess.CompletedProcess[str]:
        """Replaces the container; the process is killed after as many changing commands as given."""
        lines = f"source '{SCRIPTS}/lib/container.bash'; replace_container app 30 {image}"
        dies_at = self.commands() + dies_after if dies_after else 0
        return self.run("-euo", "pipefail", "-c", lines, DOCKER_DIES=str(dies_at))

    def deploy_database(self, addresses: str) -> subprocess.CompletedProcess[str]:
        for script in (EVENTS_DB / "load_and_run.bash", SCRIPTS / "lib/container.bash"):
            shutil.copy(script, self.folder)
        return self.run(str(self.folder / "load_and_run.bash"), LISTEN_ADDRESSES=addresses)

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *arguments],
            env={
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "HOME": str(self.folder),
                "DOCKER_STATE": str(self.folder / "state"),
                **more,
            },
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )

    def becomes_ill(self) -> None:
        """Makes the running container unhealthy until it starts again."""
        state = json.loads((self.folder / "state").read_text())
        state["containers"]["app"]["ill"] = True
        (self.folder / "state").write_text(json.dumps(state))

    def commands(self) -> int:
        file = self.folder / "state"
        return int(json.loads(file.read_text())["commands"]) if file.exists() else 0

    def containers(self) -> dict[str, tuple[str, bool]]:
        """Returns the image of each container, and whether it runs."""
        containers = json.loads((self.folder / "state").read_text())["containers"]
        return {name: (container["image"], container["running"]) for name, container in containers.items()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    programs = {
        "docker": f'#!/bin/sh\nexec "{sys.executable}" -I -S "{STAND_IN}" "$@"\n',
        "getent": GETENT,
        "psql": PSQL,
        "pg_isready": PG_ISREADY,
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return Machine(tmp_path)


def test_first_version_runs(machine: Machine) -> None:
    result = machine.deploy("app:1")

    assert result.returncode == 0, result.stderr
    assert machine.containers() == {"app": ("app:1", True)}


def test_container_has_no_rights_of_root(machine: Machine) -> None:
    machine.deploy("app:1")

    options = json.loads((machine.folder / "state").read_text())["containers"]["app"]["options"]
    assert "--cap-drop ALL --security-opt no-new-privileges" in " ".join(options)


@pytest.mark.parametrize("component", ["app", "events-db", "runner"])
def test_every_container_is_confined_and_limited(component: str) -> None:
    folder = SCRIPTS.parent / component
    text = "".join(
        file.read_text()
        for file in (folder / "load_and_run.bash", folder / "run_runner.bash")
        if file.exists()
    )

    # replace_container confines by itself.
    assert "replace_container" in text or text.count('"${CONFINED[@]}"') == text.count("docker run")
    assert re.search(r"--pids-limit [1-9]\d+ ", text)


def test_next_version_runs_and_the_previous_one_is_kept(machine: Machine) -> None:
    for image in ("app:1", "app:2", "app:3"):
        assert machine.deploy(image).returncode == 0

    assert machine.containers() == {"app": ("app:3", True), "app-previous": ("app:2", False)}


def test_version_that_is_not_healthy_is_rolled_back(machine: Machine) -> None:
    machine.deploy("app:1")

    result = machine.deploy("app:broken")

    assert result.returncode == 1
    assert "10.0.0.9:5432 - no response\n" in result.stderr
    assert "app: rolled back to app:1" in result.stderr
    assert machine.containers() == {"app": ("app:1", True)}


@pytest.mark.parametrize("rolled_back_before", [False, True])
def test_version_that_was_healthy_is_kept_while_it_is_not(machine: Machine, rolled_back_before: bool) -> None:
    machine.deploy("app:1")
    machine.deploy("app:2")
    if rolled_back_before:
        machine.deploy("app:broken")
    machine.becomes_ill()

    result = machine.deploy("app:broken-too")

    assert result.returncode == 1
    assert "app: rolled back to app:2" in result.stderr
    assert machine.containers() == {"app": ("app:2", True)}


def test_first_version_that_is_not_healthy_is_removed(machine: Machine) -> None:
    result = machine.deploy("app:broken")

    assert result.returncode == 1
    assert "no previous version" in result.stderr
    assert machine.containers() == {}


# Removing the version before the previous one, stopping, renaming, running: only then does the image matter.
@pytest.mark.parametrize(
    ("image", "commands"), [("app:3", 1), ("app:3", 2), ("app:3", 3), ("app:3", 4), ("app:broken", 4)]
)
def test_next_deployment_succeeds_after_a_kill_at_any_command(
    machine: Machine, image: str, commands: int
) -> None:
    machine.deploy("app:1")
    machine.deploy("app:2")

    assert machine.deploy(image, dies_after=commands).returncode == -9

    result = machine.deploy("app:4")
    assert result.returncode == 0, result.stderr
    serving, previous = machine.containers()["app"], machine.containers()["app-previous"]
    assert serving == ("app:4", True)
    # Never a version that was not healthy.
    assert previous[0] in ("app:2", "app:3")
    assert machine.deploy("app:broken").returncode == 1
    assert machine.containers() == {"app": ("app:4", True)}


@pytest.mark.parametrize(("wanted", "given"), [("1.5", "1.5"), ("2", "2"), ("2.5", "2"), ("10", "2")])
def test_processors_are_limited_to_those_of_the_machine(tmp_path: Path, wanted: str, given: str) -> None:
    nproc = tmp_path / "nproc"
    nproc.write_text("#!/bin/sh\necho 2\n")
    nproc.chmod(0o755)

    printed = subprocess.check_output(
        [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            f"source '{SCRIPTS}/lib/container.bash'; at_most_processors {wanted}",
        ],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        text=True,
    )

    assert printed == f"{given}\n"


def test_database_is_checked_at_the_addresses_it_listens_on(machine: Machine) -> None:
    result = machine.deploy_database("127.0.0.1,10.0.0.2")

    assert result.returncode == 0, result.stderr
    state = json.loads((machine.folder / "state").read_text())
    options = state["containers"]["eventsql-events-db"]["options"]
    assert "LISTEN_ADDRESSES=127.0.0.1,10.0.0.2" in options
    assert "listen_addresses=127.0.0.1,10.0.0.2" in options


def test_database_at_a_name_for_the_machine_itself_is_refused(machine: Machine) -> None:
    result = machine.deploy_database("127.0.0.1,itself")

    assert result.returncode == 1
    assert "itself is 127.0.1.1 on this machine, which no other one reaches" in result.stderr
    assert machine.commands() == 0


@pytest.mark.parametrize(
    ("addresses", "status", "printed"),
    [
        ("127.0.0.1,10.0.0.2", 0, ""),
        ("127.0.0.1,10.0.0.9", 1, "10.0.0.9:5432 - no response\n"),
        ("*", 0, ""),
        ("", 0, ""),
    ],
)
def test_database_is_healthy_if_it_answers_at_all_addresses(
    machine: Machine, addresses: str, status: int, printed: str
) -> None:
    result = machine.run(str(EVENTS_DB / "health.bash"), LISTEN_ADDRESSES=addresses)

    assert (result.returncode, result.stdout) == (status, printed), result.stderr


@pytest.mark.parametrize(("databases", "unfinished"), [("0", True), ("1", False)])
def test_first_start_of_the_database_that_did_not_finish_is_named(
    machine: Machine, databases: str, unfinished: bool
) -> None:
    result = machine.run(str(EVENTS_DB / "health.bash"), DATABASES=databases)

    assert result.returncode == 1
    assert ("The first start did not finish" in result.stdout) == unfinished
    assert ("volume, eventsql-events-db on a deployed machine" in result.stdout) == unfinished


def test_waits_for_a_running_deployment(tmp_path: Path) -> None:
    lines = (
        f"source '{SCRIPTS}/lib/container.bash'; require_only_deployment app; "
        "echo 'has it'; read -r _ || true"
    )
    processes = [
        subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", lines],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.stdout for process in processes if process.stdout]
    printed = [output.readline() for output in outputs]
    assert sorted(printed) == ["has it\n", "waiting for another deployment of app...\n"]
    first = printed.index("has it\n")

    processes[first].kill()
    assert outputs[1 - first].readline() == "has it\n"
    processes[1 - first].communicate("\n", timeout=WAIT_SECONDS)
    processes[first].communicate(timeout=WAIT_SECONDS)
