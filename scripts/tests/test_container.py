"""Replaces a container by the next version, and checks which one runs, also after an interruption."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.repository import SCRIPTS
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow

STAND_IN = SCRIPTS / "tests/stand_in_docker.py"


@dataclass(frozen=True)
class Machine:
    """A machine with Docker."""

    folder: Path

    def deploy(self, image: str, dies_after: int = 0) -> subprocess.CompletedProcess[str]:
        """Replaces the container; the process is killed after as many changing commands as given."""
        lines = f"source '{SCRIPTS}/lib/container.bash'; replace_container app 30 {image}"
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            env={
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "HOME": str(self.folder),
                "DOCKER_STATE": str(self.folder / "state"),
                "DOCKER_DIES": str(self.commands() + dies_after if dies_after else 0),
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
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{STAND_IN}" "$@"\n')
    docker.chmod(0o755)
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
