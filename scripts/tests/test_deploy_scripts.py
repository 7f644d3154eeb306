"""What the deployment scripts run on machines, and what they refuse; with a fake ssh."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.repository import SCRIPTS
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow

BASH_SCRIPTS = (
    "build_and_package",
    "collect_docker_stats",
    "deploy_app",
    "deploy_events_dbs",
    "deploy_runners",
    "init_python_env",
    "rehearse_locally",
    "run_all_benchmarks",
    "run_multiple_dbs_benchmark",
    "run_single_db_benchmark",
)
# Records its command line and its input; fails on the given machine at the given command.
SSH = """#!/bin/sh
number=$(ls "$SSH_LOG" | wc -l)
echo "$@" > "$SSH_LOG/$number.command"
cat > "$SSH_LOG/$number.input"
case "$*" in
  *"${FAILS_ON:-nowhere}"*"${FAILS_AT:-}"*) exit 255 ;;
  *load_and_run*) exit "${LOAD_STATUS:-0}" ;;
esac
"""
DOCKER = """#!/bin/sh
echo "$@" >> "$SSH_LOG/docker.calls"
"""


@dataclass(frozen=True)
class Deployment:
    """A repository with packed components, and the commands its scripts have sent to machines."""

    root: Path

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(self.root / f"scripts/{script}.bash"), *arguments],
            env={
                "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
                "SSH_LOG": str(self.root / "log"),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )

    def sent(self, ending: str) -> str:
        files = sorted((self.root / "log").glob(f"*.{ending}"), key=lambda file: int(file.stem) // 2)
        return "".join(file.read_bytes().decode(errors="replace") for file in files)


def write_program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin/ssh", SSH)
    (tmp_path / "log").mkdir()
    for component in ("app", "events-db", "runner"):
        (tmp_path / component / "dist").mkdir(parents=True)
        (tmp_path / component / "dist/image.tar.gz").write_text("an image")
    (tmp_path / "infra-passwords.env").write_text("DB0_PASSWORD=secret-0\nDB1_PASSWORD=secret-1\n")
    return Deployment(tmp_path)


@pytest.mark.parametrize("script", BASH_SCRIPTS)
def test_help_has_examples_and_needs_nothing(deployment: Deployment, script: str) -> None:
    result = deployment.run(script, "--help")

    assert result.returncode == 0, result.stderr
    assert "Example" in result.stdout
    assert f"scripts/{script}.bash" in result.stdout
    assert deployment.sent("command") == ""


def test_help_states_the_options_of_the_apps_image(deployment: Deployment) -> None:
    dockerfile = (SCRIPTS.parent / "app/Dockerfile").read_text()

    (options,) = re.findall('^ENV JAVA_OPTS="(.*)"$', dockerfile, re.MULTILINE)
    assert f"[{options}]" in deployment.run("deploy_app", "--help").stdout


def test_passwords_travel_on_no_command_line(deployment: Deployment) -> None:
    result = deployment.run("deploy_app", APP_HOST="192.0.2.1", DB0_HOST="10.0.0.2", DB1_HOST="10.0.0.3")

    assert result.returncode == 0, result.stderr
    settings = "DB0_HOST=10.0.0.2\nDB0_PASSWORD=secret-0\nDB1_HOST=10.0.0.3\nDB1_PASSWORD=secret-1\n"
    assert settings in deployment.sent("input")
    assert "secret" not in deployment.sent("command") + result.stdout + result.stderr
    assert "umask 077; cat >eventsql/app/settings.env" in deployment.sent("command")


def test_host_keys_are_kept_in_the_project(deployment: Deployment) -> None:
    deployment.run("deploy_runners", RUNNER0_HOST="192.0.2.1")

    commands = deployment.sent("command").splitlines()
    assert commands
    # In quotes: without them, ssh would split the path at a blank.
    wanted = f'StrictHostKeyChecking=accept-new -o UserKnownHostsFile="{deployment.root}/infra-known-hosts"'
    assert [command for command in commands if "BatchMode" in command and wanted not in command] == []
    # A shared connection of the user would keep the groups of the first login.
    assert [
        command for command in commands if "BatchMode" in command and "ControlPath=none" not in command
    ] == []


def test_each_database_gets_its_own_password_only(deployment: Deployment) -> None:
    result = deployment.run("deploy_events_dbs", EVENTS_DB0_HOST="192.0.2.1", EVENTS_DB1_HOST="192.0.2.2")

    assert result.returncode == 0, result.stderr
    assert "EVENTSQL_PASSWORD=secret-0\n" in deployment.sent("input")
    assert "EVENTSQL_PASSWORD=secret-1\n" in deployment.sent("input")


def test_ports_are_bound_to_the_private_addresses(deployment: Deployment) -> None:
    databases = deployment.run(
        "deploy_events_dbs",
        EVENTS_DB0_HOST="192.0.2.1",
        EVENTS_DB1_HOST="192.0.2.2",
        EVENTS_DB0_PRIVATE_HOST="10.0.0.2",
        # As the app reaches it.
        DB1_HOST="10.0.0.3",
    )
    app = deployment.run("deploy_app", APP_HOST="192.0.2.3", APP_PRIVATE_HOST="10.0.0.4", DB0_HOST="10.0.0.2")

    assert (databases.returncode, app.returncode) == (0, 0), databases.stderr + app.stderr
    assert "LISTEN_ADDRESSES='127.0.0.1,10.0.0.2'" in deployment.sent("command")
    assert "LISTEN_ADDRESSES='127.0.0.1,10.0.0.3'" in deployment.sent("command")
    assert "SERVER_ADDRESS=10.0.0.4\n" in deployment.sent("input")
    assert "Warning" not in databases.stderr + app.stderr


def test_port_on_all_addresses_is_warned_about(deployment: Deployment) -> None:
    databases = deployment.run("deploy_events_dbs", EVENTS_DB0_HOST="192.0.2.1")
    app = deployment.run("deploy_app", APP_HOST="192.0.2.3", DB0_HOST="10.0.0.2")

    assert (
        "Warning: EVENTS_DB0_PRIVATE_HOST is not set, so the port is open on all addresses"
        in databases.stderr
    )
    assert "Warning: APP_PRIVATE_HOST is not set, so the port is open on all addresses" in app.stderr
    assert "SERVER_ADDRESS" not in deployment.sent("input")


def test_runners_are_on_the_machines_of_the_databases_unless_said_otherwise(deployment: Deployment) -> None:
    result = deployment.run(
        "deploy_runners", EVENTS_DB0_HOST="192.0.2.1", EVENTS_DB1_HOST="192.0.2.2", RUNNER1_HOST="192.0.2.9"
    )

    assert result.returncode == 0, result.stderr
    assert re.findall(r"\[(\S+)\] copying runner", result.stdout) == ["192.0.2.1", "192.0.2.9"]


def test_archives_carry_no_owner_of_the_sending_machine(deployment: Deployment) -> None:
    deployment.run("deploy_runners", RUNNER0_HOST="192.0.2.1")

    assert "tar --extract --no-same-owner" in deployment.sent("command")
    (archive,) = [
        file for file in (deployment.root / "log").glob("*.input") if b"image.tar.gz" in file.read_bytes()
    ]
    with tarfile.open(archive) as copied:
        assert {(member.uid, member.gid) for member in copied} == {(0, 0)}


def test_failed_machine_is_reported_by_the_exit_code(deployment: Deployment) -> None:
    result = deployment.run(
        "deploy_runners", RUNNER0_HOST="192.0.2.1", RUNNER1_HOST="192.0.2.2", LOAD_STATUS="1"
    )

    assert result.returncode == 1
    # The other machine is still deployed.
    assert "[192.0.2.2] copying runner" in result.stdout


@pytest.mark.parametrize("step", ["tar --extract", "settings.env"])
@pytest.mark.parametrize(
    ("script", "environment"),
    [
        ("deploy_events_dbs", {"EVENTS_DB0_HOST": "192.0.2.1", "EVENTS_DB1_HOST": "192.0.2.2"}),
        ("deploy_runners", {"RUNNER0_HOST": "192.0.2.1", "RUNNER1_HOST": "192.0.2.2"}),
    ],
)
def test_failed_copy_is_reported_and_runs_nothing(
    deployment: Deployment, script: str, environment: dict[str, str], step: str
) -> None:
    result = deployment.run(script, FAILS_ON="192.0.2.1", FAILS_AT=step, **environment)

    assert result.returncode == 1
    assert "[192.0.2.1]" in result.stderr and "failed, the running version stays" in result.stderr
    started = [line for line in deployment.sent("command").splitlines() if line.endswith("load_and_run.bash")]
    assert len(started) == 1
    assert "192.0.2.2" in started[0]


@pytest.mark.parametrize(
    ("machine", "environment", "platform"),
    [
        ("x86_64", {}, ""),
        ("arm64", {}, "--platform linux/amd64 "),
        ("arm64", {"PLATFORM": "linux/arm64"}, "--platform linux/arm64 "),
        ("x86_64", {"PLATFORM": "linux/arm64"}, "--platform linux/arm64 "),
    ],
)
def test_images_are_for_the_machines(
    deployment: Deployment, machine: str, environment: dict[str, str], platform: str
) -> None:
    write_program(deployment.root / "bin/docker", DOCKER)
    write_program(deployment.root / "bin/uname", f"#!/bin/sh\necho {machine}\n")
    (deployment.root / "events-db/load_and_run.bash").touch()

    result = deployment.run("build_and_package", APP="events-db", **environment)

    assert result.returncode == 0, result.stderr
    build, _ = (deployment.root / "log/docker.calls").read_text().splitlines()
    label = "--label org.opencontainers.image.revision=\\S+"
    assert re.fullmatch(f"build --quiet {label} --tag eventsql-events-db:\\S+ {platform}events-db", build)


def test_environment_of_a_former_python_is_created_anew(deployment: Deployment) -> None:
    venv = deployment.root / "venv"
    (venv / "bin").mkdir(parents=True)
    write_program(venv / "bin/python", "#!/bin/sh\nexit 1\n")
    pinned = "scripts/requirements-cloud.txt"
    checksum = hashlib.sha256((deployment.root / pinned).read_bytes()).hexdigest()
    (venv / "requirements.sha256").write_text(f"{checksum}  {pinned}\n")
    write_program(
        deployment.root / "bin/python3",
        '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$@" >>"$SSH_LOG/python.calls"\nexit 1\n',
    )

    result = deployment.run("init_python_env")

    assert result.returncode == 1
    assert "nothing has changed" not in result.stdout
    assert (deployment.root / "log/python.calls").read_text() == "-m venv venv\n"


@pytest.mark.parametrize(("content", "status"), [("postgres/data", 2), (".eventsql-rehearsal", 0), ("", 0)])
def test_rehearsal_takes_no_folder_of_others(deployment: Deployment, content: str, status: int) -> None:
    folder = deployment.root / "a folder"
    (folder / content).parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    if content:
        (folder / content).touch()
    (deployment.root / "scripts/rehearse.bash").write_text(
        f'set -euo pipefail; ROOT="{deployment.root}"; source "{SCRIPTS}/lib/rehearsal.bash"\n'
        f'FOLDER="{folder}"; require_own_folder'
    )

    result = deployment.run("rehearse")

    assert result.returncode == status
    assert ("but " + str(folder) + " has other files" in result.stderr) == (status == 2)


def test_archives_are_written_by_the_tar_of_macos(deployment: Deployment) -> None:
    write_program(
        deployment.root / "bin/tar",
        """#!/bin/sh
case $1 in --version) echo 'bsdtar 3.5.3'; exit ;; esac
echo "$@" >>"$SSH_LOG/tar.calls"
""",
    )
    (deployment.root / "scripts/pack.bash").write_text(
        f'set -euo pipefail; ROOT="{deployment.root}"; source "{SCRIPTS}/lib/deploy.bash"\n'
        "archive --directory=/ ."
    )

    result = deployment.run("pack")

    assert result.returncode == 0, result.stderr
    assert (deployment.root / "log/tar.calls").read_text() == (
        "--create --file=- --uid 0 --gid 0 --uname  --gname  --directory=/ .\n"
    )


def test_what_a_killed_rehearsal_has_mounted_is_not_removed(deployment: Deployment) -> None:
    """Folders of the machine itself may be mounted below the one that is created again."""
    root = deployment.root / "a folder/root"
    (root / "proc/sys").mkdir(parents=True)
    mounted = f"/\n{root}/proc\n{root}/proc/sys\n{root}-of-another/proc\n"
    write_program(deployment.root / "bin/findmnt", f"#!/bin/sh\nprintf '{mounted}'\n")
    write_program(deployment.root / "bin/umount", '#!/bin/sh\necho "$@" >> "$SSH_LOG/umount.calls"\n')
    write_program(deployment.root / "bin/rm", '#!/bin/sh\necho rm "$@" >> "$SSH_LOG/umount.calls"\n')
    (deployment.root / "scripts/remove.bash").write_text(
        f'set -euo pipefail; source "{SCRIPTS}/lib/rehearsal.bash"; FOLDER="{root.parent}"; remove_root'
    )

    result = deployment.run("remove")

    assert result.returncode == 0, result.stderr
    assert (deployment.root / "log/umount.calls").read_text().splitlines() == [
        f"--lazy {root}/proc/sys",
        f"--lazy {root}/proc",
        f"rm -rf --one-file-system {root}",
    ]


@pytest.mark.parametrize(
    ("script", "environment", "message"),
    [
        ("build_and_package", {"APP": "all"}, "APP must be events-db, app or runner, but is 'all'"),
        ("deploy_app", {}, "APP_HOST must be set"),
        ("deploy_app", {"APP_HOST": "192.0.2.1"}, "DB0_HOST must be set"),
        (
            "deploy_app",
            {"APP_HOST": "192.0.2.1", "DB0_HOST": "a", "DB1_HOST": "b", "DB2_HOST": "c"},
            "DB2_PASSWORD must be set",
        ),
        (
            "deploy_app",
            {"APP_HOST": "192.0.2.1", "DB0_HOST": "a", "APP_CPUS": "two"},
            "APP_CPUS must be a number such as 2 or 1.5, but is 'two'",
        ),
        ("deploy_events_dbs", {}, "EVENTS_DB0_HOST must be set"),
        (
            "deploy_events_dbs",
            {"EVENTS_DB0_HOST": "192.0.2.1", "EVENTS_DB_MEMORY_MB": "2g"},
            "EVENTS_DB_MEMORY_MB must be a whole number from 1, but is '2g'",
        ),
        ("deploy_runners", {}, "RUNNER0_HOST must be set"),
        ("run_single_db_benchmark", {}, "RUNNER_HOST must be set"),
        ("run_multiple_dbs_benchmark", {"RUNNER0_HOST": "192.0.2.1"}, "DB0_HOST must be set"),
        ("run_multiple_dbs_benchmark", {"RUNNER0_HOST": "a", "DB0_HOST": "b"}, "APP_HOST must be set"),
        (
            "deploy_app",
            {"APP_HOST": "192.0.2.1", "DB0_HOST": "a", "APP_PRIVATE_HOST": "a; b"},
            "APP_PRIVATE_HOST must be an address, but is 'a; b'",
        ),
        (
            "run_single_db_benchmark",
            {"RUNNER_HOST": "a", "DB0_HOST": "b", "APP_HOST": "c", "RESULT_NAME": "../elsewhere"},
            "RESULT_NAME must be a folder in results/",
        ),
        ("run_all_benchmarks", {"SERIES_NAME": "/tmp/elsewhere"}, "SERIES_NAME must be a folder in results/"),
        ("collect_docker_stats", {"INTERVAL_SECONDS": "often"}, "INTERVAL_SECONDS must be a whole number"),
    ],
)
def test_wrong_input_exits_with_2_before_any_machine_is_asked(
    deployment: Deployment, script: str, environment: dict[str, str], message: str
) -> None:
    result = deployment.run(script, **environment)

    assert result.returncode == 2
    assert message in result.stderr
    assert deployment.sent("command") == ""


def test_component_that_is_not_packed_is_reported(deployment: Deployment) -> None:
    shutil.rmtree(deployment.root / "app/dist")

    result = deployment.run("deploy_app", APP_HOST="192.0.2.1", DB0_HOST="10.0.0.2")

    assert result.returncode == 2
    assert "APP=app bash scripts/build_and_package.bash" in result.stderr
