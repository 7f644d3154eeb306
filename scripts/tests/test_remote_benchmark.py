"""Benchmarks on other machines that are told to end, or killed; with a stand-in for ssh."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.repository import SCRIPTS

# The runner goes on until its container is stopped, and leaves its file then, as the real one does.
SSH = """#!/bin/bash
files='result.json report.txt series.csv resources.csv publish.hlog end_to_end.hlog'
case "$*" in
  *'docker stop'*) touch "$MACHINE/stopped" ;;
  *'run_runner.bash publish'*)
    echo 'Publishing...'
    touch "$MACHINE/started"
    until [[ -e $MACHINE/stopped ]]; do sleep 0.05; done
    [[ -z ${LEAVES_NOTHING:-} ]] || exit 1
    echo '{}' >"$MACHINE/runner-0.json"
    echo 'INTERRUPTED'
    exit 1 ;;
  *'run_runner.bash summarize'*)
    cd "$MACHINE" && touch $files ;;
  *'cat eventsql/results/'*) cat "$MACHINE/runner-0.json" ;;
  *'tar --create'*)
    cd "$MACHINE" && tar --create $files ;;
  *INTERVAL_SECONDS*) exec sleep "$COLLECT_SECONDS" ;;
  *) cat >/dev/null ;;
esac
"""
WAIT_SECONDS = 60
COLLECT_SECONDS = 600


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(SCRIPTS, tmp_path / "scripts", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    (tmp_path / "scripts/draw_report.bash").write_text("exit 0\n")
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    (tmp_path / "machine").mkdir()
    return tmp_path


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
        # Whoever starts the tests may ignore it, and a shell cannot trap what it was given as ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def await_started(root: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (root / "machine/started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def nothing_is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_told_to_end_fetches_what_was_measured(root: Path, sent: signal.Signals, status: int) -> None:
    process = start(root)
    await_started(root)

    if sent == signal.SIGINT:
        # As a terminal does: all processes get it.
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    said, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == status, said
    results = root / "results/ended"
    assert (results / "runner-0.json").read_text() == "{}\n"
    assert "INTERRUPTED" in (results / "runner-0.txt").read_text()
    assert (results / "result.json").exists()
    assert (results / "end_to_end.hlog").exists()
    assert nothing_is_left(process.pid)


def test_told_to_end_without_a_result_says_so(root: Path) -> None:
    process = start(root, LEAVES_NOTHING="yes")
    await_started(root)

    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == 143
    assert "runner-0 left no result" in said
    assert "Results:" not in said
    assert not list((root / "results/ended").glob("runner-0.json*"))
    assert nothing_is_left(process.pid)


def test_second_one_at_the_same_time_is_refused(root: Path) -> None:
    first = start(root)
    await_started(root)

    second = start(root, RESULT_NAME="second")
    said, _ = second.communicate(timeout=WAIT_SECONDS)

    assert second.returncode == 2
    assert f"another benchmark is going on, of process {first.pid}" in said
    assert not (root / "results/second").exists()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=WAIT_SECONDS)
    assert nothing_is_left(first.pid)


def test_killed_leaves_no_collector_and_another_one_runs(root: Path) -> None:
    killed = start(root)
    await_started(root)

    killed.kill()
    killed.wait()
    (root / "machine/stopped").touch()  # its runner ends some time
    deadline = time.monotonic() + WAIT_SECONDS
    while not nothing_is_left(killed.pid):
        assert time.monotonic() < deadline, "collectors go on"
        time.sleep(0.1)
    killed.communicate()

    (root / "machine/started").unlink()
    (root / "machine/stopped").unlink()
    another = start(root, RESULT_NAME="another")
    await_started(root)
    another.send_signal(signal.SIGTERM)
    said, _ = another.communicate(timeout=WAIT_SECONDS)
    assert another.returncode == 143, said
    assert (root / "results/another/result.json").exists()


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_series_told_to_end_ends_the_benchmark_at_hand(root: Path, sent: signal.Signals, status: int) -> None:
    done = root / "results/series/1-database-1000"
    done.mkdir(parents=True)
    (done / "result.json").write_text("{}")
    process = start(root, "run_all_benchmarks", SERIES_NAME="series")
    await_started(root)

    process.send_signal(sent)
    said, _ = process.communicate(timeout=WAIT_SECONDS)

    assert process.returncode == status, said
    assert "series/1-database-1000: measured already" in said
    # With what it measured, but not under a name that counts as measured the next time.
    assert len(list((root / "results/series").glob("1-database-5000-broken-off-*/result.json"))) == 1
    assert not (root / "results/series/1-database-5000").exists()
    assert not (root / "results/series/1-database-fastest").exists()
    assert not (root / "results/.benchmark-process").exists()
