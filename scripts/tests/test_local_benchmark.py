"""All steps in order, with a fake `java`: real processes, no databases."""

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
    return Repository.create(tmp_path, "local")


def test_good_run_leaves_results_and_nothing_else(repository: Repository) -> None:
    process = repository.start(SHARDS="2", EVENTS_RATE="7", DB0_HOST="not ours")
    out, err = finish(process)

    assert process.returncode == 0, err
    results = repository.results()
    assert out.splitlines()[-1] == f"Results: {results / 'result.json'}"
    assert "[runner-0] publishing" in out
    assert "[runner-1] publishing" in out
    command = "SHARDS=2 EVENTS_RATE=7 bash scripts/run_local_benchmark.bash"
    run = json.loads((results / "result.json").read_text())
    assert run["command"] == command
    runners = [json.loads((results / f"runner-{number}.json").read_text()) for number in range(2)]
    # One runner samples all processes.
    sampled = dict(part.split("=") for part in runners[0].pop("PROCESSES").split(","))
    assert sampled.pop("app").isdigit()
    assert sampled == {"database-0": "4000", "database-1": "4001"}
    assert runners[1].pop("PROCESSES") is None
    for number in range(2):
        assert runners[number] == {
            "RUNNER_NUMBER": str(number),
            "RUNNERS": "2",
            "RUN_ID": run["run"],
            "DB0_HOST": "localhost",
            "DB0_PASSWORD": "secret-0",
            "EVENTS_RATE": "7",
            "KEYED": "false",
            "APP_URLS": ",".join(run["apps"]),
        }
    assert len(run["apps"]) == 1
    assert "No plots: .venv is missing" in err
    assert (results / "report.txt").read_text() == (
        "the summary\n\nRunner 0:\npublishing\n\nRunner 1:\npublishing\n"
    )
    logs = sorted(log.name for log in (results / "logs").iterdir())
    assert logs == ["app.log", "databases.log", "runner-0.log", "runner-1.log", "summarize.log"]
    # Databases, app, two runners, the summary.
    repository.assert_nothing_is_left(started=5)


def test_several_members_are_passed_to_runners_and_summary(repository: Repository) -> None:
    process = repository.start(SHARDS="1", MEMBERS="3")
    _, err = finish(process)

    assert process.returncode == 0, err
    results = repository.results()
    run = json.loads((results / "result.json").read_text())
    assert len(set(run["apps"])) == 3
    assert json.loads((results / "runner-0.json").read_text())["APP_URLS"] == ",".join(run["apps"])
    assert run["command"] == "SHARDS=1 MEMBERS=3 bash scripts/run_local_benchmark.bash"
    logs = sorted(log.name for log in (results / "logs").iterdir())
    assert logs == ["app-0.log", "app-1.log", "app-2.log", "databases.log", "runner-0.log", "summarize.log"]
    # Databases, three apps, a runner, the summary.
    repository.assert_nothing_is_left(started=6)


def test_failed_run_keeps_the_result_and_exits_with_1(repository: Repository) -> None:
    process = repository.start("lost", SHARDS="1")
    out, _ = finish(process)

    assert process.returncode == 1
    assert out.splitlines()[-1].startswith("Results: ")
    repository.assert_nothing_is_left(started=4)


@pytest.mark.parametrize(
    ("broken", "message", "started"),
    [
        ("events-db", "databases ended with status 1", 1),
        ("app", "app ended with status 1", 2),
        ("runner-summarize", "summarizing ended with status 1", 4),
    ],
)
def test_broken_step_is_named_and_the_rest_is_stopped(
    repository: Repository, broken: str, message: str, started: int
) -> None:
    process = repository.start(f"fail:{broken}", SHARDS="1")
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
    process = repository.start("hang", SHARDS="2")
    assert process.stdout is not None
    publishing = 0
    while publishing < 2:
        publishing += process.stdout.readline().endswith("publishing\n")

    process.send_signal(number)
    out, err = finish(process)

    assert process.returncode == status, err
    results = repository.results()
    assert out.splitlines()[-1] == f"Results: {results / 'result.json'}"
    assert sorted(file.name for file in results.glob("runner-*.json")) == ["runner-0.json", "runner-1.json"]
    repository.assert_nothing_is_left(started=5)


def test_wrong_variable_exits_with_2_before_anything_starts(repository: Repository) -> None:
    process = repository.start(SHARDS="many")
    _, err = finish(process)

    assert process.returncode == 2
    assert err == "SHARDS must be a number between 1 and 16, but is 'many'\n"
    assert not (repository.root / "ids").exists()
    assert not (repository.root / "results").exists()


def test_help_needs_no_java() -> None:
    result = subprocess.run(
        ["bash", str(SCRIPTS / "run_local_benchmark.bash"), "--help"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )

    assert "EVENTS_TO_PUBLISH" in result.stdout
    assert "Examples:" in result.stdout
