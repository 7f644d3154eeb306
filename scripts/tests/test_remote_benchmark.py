"""Benchmarks on other machines that are stopped or killed; with a fake ssh."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmark.settings import Settings
from tests.repository import SCRIPTS
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.slow

# The runner runs until its container is stopped or removed, and then writes its file, like the real one.
SSH = """#!/bin/bash
files='result.json report.txt series.csv resources.csv publish.hlog end_to_end.hlog'
case "$*" in
  *"@${UNREACHABLE:-none} "*) exit 255 ;;
  *'docker stop'*)
    # There is no container before it has started.
    [[ -z ${START_SECONDS:-} || -e $MACHINE/started ]] || exit 1
    # Exits at Ctrl-C at any time, as ssh does; a shell without a trap may continue.
    sleep "${STOP_SECONDS:-0}" &
    trap 'kill -KILL "$!"; exit 130' INT
    touch "$MACHINE/stopping"
    wait "$!"
    touch "$MACHINE/stopped" ;;
  *'docker rm --force eventsql-runner'*)
    echo "$*" >>"$MACHINE/removed"
    [[ ! -e $MACHINE/started ]] || touch "$MACHINE/stopped" ;;
  *'run_runner.bash publish'*)
    echo 'Publishing...' "${SAYS:-}"
    echo "$*" >"$MACHINE/publishing"
    sleep "${START_SECONDS:-0}"
    touch "$MACHINE/started"
    until [[ -e $MACHINE/stopped ]]; do sleep 0.05; done
    [[ -z ${LEAVES_NOTHING:-} ]] || exit 1
    echo "{${SAYS:-}}" >"$MACHINE/runner-0.json"
    echo 'INTERRUPTED'
    exit 1 ;;
  *' nproc') echo 4 ;;
  *'run_runner.bash summarize'*)
    echo "$*" >"$MACHINE/summarizing"
    cd "$MACHINE" && touch $files && echo "{${SAYS:-}}" >result.json ;;
  *'cat eventsql/results/'*) cat "$MACHINE/runner-0.json" ;;
  *'tar --create'*)
    cd "$MACHINE" && tar --create $files ;;
  *INTERVAL_SECONDS*) exec sleep "$COLLECT_SECONDS" ;;
  *) cat >/dev/null ;;
esac
"""
COLLECT_SECONDS = 3600


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (tmp_path / "scripts/draw_report.bash").write_text("exit 0\n")
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    (tmp_path / "machine").mkdir()
    yield tmp_path
    # If a test fails midway, this stops its runner and the processes that wait for it.
    (tmp_path / "machine/stopped").touch()


def start(root: Path, script: str = "run_single_db_benchmark", **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", str(root / f"scripts/{script}.bash")],
        env={
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "MACHINE": str(root / "machine"),
            "RUNNER_HOST": "192.0.2.1",
            "APP_HOST": "192.0.2.2",
            "DB0_HOST": "10.0.0.2",
            "DB0_PASSWORD": "secret",
            "COLLECT_SECONDS": str(COLLECT_SECONDS),
            "RESULT_NAME": "ended",
            **more,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # The parent of the tests may ignore it, and a shell cannot trap a signal inherited as ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def await_file(file: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def await_started(root: Path) -> None:
    await_file(root / "machine/started")


def await_nothing_left(group: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not nothing_is_left(group):
        assert time.monotonic() < deadline, "processes are still running"
        time.sleep(0.1)


def write_measured(folder: Path, exit_code: int | None = 0) -> None:
    """Writes the results of a benchmark; without the exit code, of one killed while it drew its report."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    if exit_code is not None:
        (folder / "exit-code").write_text(f"{exit_code}\n")


def nothing_is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_fetches_what_was_measured(root: Path, sent: signal.Signals, status: int) -> None:
    process = start(root)
    await_started(root)

    if sent == signal.SIGINT:
        # As in a terminal, all processes get it.
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == status, output
    results = root / "results/ended"
    assert (results / "runner-0.json").read_text() == "{}\n"
    assert "INTERRUPTED" in (results / "runner-0.txt").read_text()
    assert (results / "result.json").exists()
    # Of the machine: a container may use fewer.
    assert "--cpus 4" in (root / "machine/summarizing").read_text()
    assert (results / "end_to_end.hlog").exists()
    assert nothing_is_left(process.pid)


def test_runner_that_has_not_started_yet_is_stopped_when_it_has(root: Path) -> None:
    """It would measure to its end, and a further signal would be ignored."""
    process = start(root, START_SECONDS="2")
    await_file(root / "machine/publishing")

    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 143, output
    assert (root / "results/ended/runner-0.json").exists()
    assert nothing_is_left(process.pid)


def test_interrupted_twice_removes_the_runners(root: Path) -> None:
    process = start(root, STOP_SECONDS=str(COLLECT_SECONDS))
    await_started(root)
    (root / "machine/removed").unlink()

    os.killpg(process.pid, signal.SIGINT)
    await_file(root / "machine/stopping")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 130, output
    assert "eventsql@192.0.2.1" in (root / "machine/removed").read_text()
    await_nothing_left(process.pid)
    assert not (root / "results/.benchmark-process").exists()


def test_runners_are_removed_on_all_machines_before_the_start(root: Path) -> None:
    process = start(root, EVENTS_DB0_HOST="192.0.2.1", EVENTS_DB1_HOST="192.0.2.3", RUNNER0_HOST="192.0.2.4")
    await_started(root)

    removed = (root / "machine/removed").read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_SECONDS)

    assert re.findall(r"eventsql@(\S+)", removed) == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]


def test_unreachable_machine_aborts_without_a_result(root: Path) -> None:
    (root / "machine/runner-0.json").write_text("of the benchmark before")

    process = start(root, EVENTS_DB0_HOST="192.0.2.3", UNREACHABLE="192.0.2.3")
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 1
    assert "[192.0.2.3] did not answer; a runner may still be running there" in output
    assert not (root / "machine/started").exists()
    assert list((root / "results/ended").glob("*.json")) == []
    await_nothing_left(process.pid)


def test_interrupted_without_a_result_says_so(root: Path) -> None:
    process = start(root, LEAVES_NOTHING="yes")
    await_started(root)

    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 143
    assert "runner-0 left no result" in output
    assert "Results:" not in output
    assert not list((root / "results/ended").glob("runner-0.json*"))
    assert nothing_is_left(process.pid)


def test_concurrent_benchmark_is_refused(root: Path) -> None:
    first = start(root)
    await_started(root)

    second = start(root, RESULT_NAME="second")
    output, _ = second.communicate(timeout=WAIT_SECONDS)

    assert second.returncode == 2
    assert f"another benchmark is running (process {first.pid})" in output
    assert not (root / "results/second").exists()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=WAIT_SECONDS)
    assert nothing_is_left(first.pid)


def test_killed_leaves_no_collector_and_the_next_one_runs(root: Path) -> None:
    killed = start(root)
    await_started(root)

    killed.kill()
    killed.wait()
    (root / "machine/stopped").touch()  # its runner ends some time
    await_nothing_left(killed.pid)
    killed.communicate()

    (root / "machine/started").unlink()
    (root / "machine/stopped").unlink()
    another = start(root)
    await_started(root)
    another.send_signal(signal.SIGTERM)
    output, _ = another.communicate(timeout=WAIT_SECONDS)
    assert another.returncode == 143, output
    assert (root / "results/ended/result.json").exists()
    # The folder of the killed benchmark had the same name.
    assert (root / "results/ended-aborted-1/runner-0.txt").exists()


def test_benchmark_just_killed_does_not_block(root: Path) -> None:
    with subprocess.Popen(["true"]) as killed:
        # It has exited but is not reaped: a zombie still accepts signals.
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
        (root / "results").mkdir()
        (root / "results/.benchmark-process").write_text(f"{killed.pid}\n")

        another = start(root)
        await_started(root)
        another.send_signal(signal.SIGTERM)
        output, _ = another.communicate(timeout=WAIT_SECONDS)

    assert another.returncode == 143, output


@pytest.mark.parametrize("measured", ["results/ended", "results/ended/another"])
def test_result_is_not_replaced(root: Path, measured: str) -> None:
    write_measured(root / measured)

    process = start(root)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 2
    assert "results/ended already exists; choose another RESULT_NAME" in output
    assert not (root / "machine/removed").exists()
    assert not (root / "results/.benchmark-process").exists()


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_series_stops_the_current_benchmark(
    root: Path, sent: signal.Signals, status: int
) -> None:
    write_measured(root / "results/series/1-database-1000")
    process = start(root, "run_all_benchmarks", SERIES_NAME="series")
    await_started(root)

    process.send_signal(sent)
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == status, output
    assert "series/1-database-1000: already measured" in output
    # The results are kept, but not under a name that counts as measured the next time.
    assert len(list((root / "results/series").glob("1-database-5000-aborted-*/result.json"))) == 1
    assert not (root / "results/series/1-database-5000").exists()
    assert not (root / "results/series/1-database-fastest").exists()
    assert not (root / "results/.benchmark-process").exists()


def test_series_has_the_rates_of_the_description(root: Path) -> None:
    text = (root / "scripts/run_all_benchmarks.bash").read_text()

    # Of each runner: on three databases, 3 × 10,000/s.
    assert "run 1-database-10000 single EVENTS_RATE=10000 " in text
    assert "run all-databases-10000 multiple EVENTS_RATE=10000 " in text


def test_results_name_machines_without_their_addresses(root: Path) -> None:
    """Results are published."""
    hosts = {"EVENTS_DB0_HOST": "192.0.2.1", "EVENTS_DB1_HOST": "192.0.2.10", "RUNNER0_HOST": "192.0.2.1"}
    process = start(root, SAYS="refused by 192.0.2.10 and 192.0.2.1", **hosts)
    await_started(root)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_SECONDS)

    folder = root / "results/ended"
    assert sorted(file.stem for file in (folder / "stats").glob("*.txt")) == [
        "app",
        "events-db-0",
        "events-db-1",
    ]
    assert "refused by events-db-1 and events-db-0" in (folder / "runner-0.txt").read_text()
    # The problems of a run, and the first message of each error. The report is drawn from them.
    for name in ("runner-0.json", "result.json"):
        assert (folder / name).read_text() == "{refused by events-db-1 and events-db-0}\n"
    texts = [file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file()]
    assert [text for text in texts if "192.0.2." in text] == []


def test_runner_is_on_the_machine_of_the_first_database(root: Path) -> None:
    process = start(root, RUNNER_HOST="", EVENTS_DB0_HOST="192.0.2.7")
    await_started(root)

    assert "eventsql@192.0.2.7" in (root / "machine/publishing").read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_SECONDS)


def test_series_reports_earlier_failures(root: Path) -> None:
    names = re.findall(r"^run (\S+)", (root / "scripts/run_all_benchmarks.bash").read_text(), re.MULTILINE)
    for name in names:
        write_measured(root / "results/series" / name, exit_code=int(name == "1-database-5000"))

    process = start(root, "run_all_benchmarks", SERIES_NAME="series")
    output, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 1
    assert output.count("already measured") == len(names) == 10
    assert output.count("already measured, and failed") == 1
    assert f"to measure it again, remove {root}/results/series/1-database-5000\n" in output
    assert not (root / "machine/removed").exists()


def test_series_repeats_a_killed_benchmark(root: Path) -> None:
    write_measured(root / "results/series/1-database-1000", exit_code=None)
    process = start(root, "run_all_benchmarks", SERIES_NAME="series")
    await_started(root)

    assert (root / "results/series/1-database-1000-aborted-1/result.json").read_text() == "{}"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_SECONDS)


def test_series_refuses_to_disturb_the_benchmark_of_a_killed_series(root: Path) -> None:
    killed = start(root, "run_all_benchmarks", SERIES_NAME="series")
    await_started(root)
    benchmark = int((root / "results/.benchmark-process").read_text())
    killed.kill()
    killed.wait()

    again = start(root, "run_all_benchmarks", SERIES_NAME="series")
    output, _ = again.communicate(timeout=WAIT_SECONDS)

    assert again.returncode == 2
    assert f"another benchmark is running (process {benchmark}); wait for its end" in output
    (root / "machine/stopped").touch()
    killed.communicate(timeout=WAIT_SECONDS)
    await_nothing_left(benchmark)
    assert [folder.name for folder in (root / "results/series").iterdir()] == ["1-database-1000"]
    # Its runner reported a failure.
    assert (root / "results/series/1-database-1000/exit-code").read_text() == "1\n"


def run_library(text: str, **environment: str) -> str:
    library = f"ROOT='{SCRIPTS.parent}' DEPLOY_ENVIRONMENT=\nsource '{SCRIPTS}/lib/remote_benchmark.bash'"
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{library}\n{text}"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("environment", [{}, {"EVENTS_RATE": "0"}, {"WARMUP_SECONDS": "3"}])
def test_jvms_warm_up_as_in_a_local_run(environment: dict[str, str]) -> None:
    printed = run_library("warmup_settings", **environment)
    given = {**environment, **dict(line.split("=") for line in printed.splitlines())}

    local = Settings.read(environment).runner_environment()
    for name in ("WARMUP_SECONDS", "WARMUP_MAX_SECONDS"):
        assert given[name] == local[name]


def test_name_of_a_machine_changes_no_field_of_a_result(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"per_runner": "192.0.2.2"}\n')

    run_library(f"runner_hosts=(run)\nhide_addresses '{tmp_path}'", APP_HOST="192.0.2.2")

    assert (tmp_path / "result.json").read_text() == '{"per_runner": "app"}\n'


@pytest.mark.parametrize(("app", "commit"), [("aaaa", "aaaa"), ("bbbb", "aaaa (runner), bbbb (app)")])
def test_result_names_the_commit_of_the_images(app: str, commit: str) -> None:
    remote = f"remote() {{ [[ $2 == *'image inspect'* ]] && echo aaaa || echo {app}; }}"

    assert run_library(f"{remote}\nmeasured_commit host", APP_HOST="192.0.2.2").strip() == commit
