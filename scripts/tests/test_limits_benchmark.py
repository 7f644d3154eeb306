"""All steps in order, with a fake `java`: real processes, no database."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.repository import SCRIPTS, Repository
from tests.waiting import WAIT_SECONDS, finish

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path, "limits")


def test_good_run_leaves_results_and_nothing_else(repository: Repository) -> None:
    process = repository.start("", "--only", "read", "--rounds=5", DB0_HOST="not ours", ONLY="append")
    out, err = finish(process)

    assert process.returncode == 0, err
    results = repository.results()
    assert out.splitlines()[-1] == f"Results: {results / 'result.json'}"
    assert "[limits] measuring" in out
    result = json.loads((results / "result.json").read_text())
    assert (result["DB0_HOST"], result["ONLY"]) == ("localhost", None)
    assert result["shards"] == ["secret-0", None, None]
    assert result["kind"] == "limits"
    (run,) = result["runs"]
    assert run["name"] == "limits"
    settings = run["limits"]
    assert (settings["parts"], settings["storage"], settings["rounds"]) == (["read"], "rows", 5)
    assert (settings["read_events"], settings["snapshot_seconds"]) == (300_000, 60)
    assert result["command"] == "bash scripts/run_limits_benchmark.bash --only read --rounds=5"
    arguments = result["arguments"]
    assert arguments[arguments.index("--git-commit") + 1] == "unknown"
    assert not (results / "limits").exists()
    logs = sorted(log.name for log in (results / "logs").iterdir())
    assert logs == ["databases.log", "limits.log", "limits.out"]
    repository.assert_nothing_is_left(started=2)


def test_failed_publish_keeps_the_result_and_exits_with_1(repository: Repository) -> None:
    process = repository.start("lost")
    out, _ = finish(process)

    assert process.returncode == 1
    assert out.splitlines()[-1].startswith("Results: ")
    repository.assert_nothing_is_left(started=2)


@pytest.mark.parametrize(
    ("broken", "message", "started"),
    [
        ("events-db", "databases ended with status 1", 1),
        ("runner-run", "measuring ended with status 1", 2),
    ],
)
def test_broken_step_is_named_and_the_rest_is_stopped(
    repository: Repository, broken: str, message: str, started: int
) -> None:
    process = repository.start(f"fail:{broken}")
    out, err = finish(process)

    assert process.returncode == 1
    assert message in err
    assert "broken on purpose" in err
    assert "Results:" not in out
    repository.assert_nothing_is_left(started)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_leaves_a_partial_result_and_no_process(
    repository: Repository, number: signal.Signals, status: int
) -> None:
    process = repository.start("hang")
    assert process.stdout is not None
    while not process.stdout.readline().endswith("measuring\n"):
        pass

    process.send_signal(number)
    out, err = finish(process)

    assert process.returncode == status, err
    assert out.splitlines()[-1] == f"Results: {repository.results() / 'result.json'}"
    repository.assert_nothing_is_left(started=2)


def test_wrong_option_exits_with_2_before_anything_starts(repository: Repository) -> None:
    process = repository.start("", "--only", "write")
    _, err = finish(process)

    assert process.returncode == 2
    assert "--only" in err
    assert not (repository.root / "ids").exists()
    assert not (repository.root / "results").exists()


def test_help_needs_no_java() -> None:
    result = subprocess.run(
        ["bash", str(SCRIPTS / "run_limits_benchmark.bash"), "--help"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )

    assert "--snapshot-seconds" in result.stdout
    assert "Examples:" in result.stdout
