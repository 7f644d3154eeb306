"""Series of runs, with a fake `java`: real processes, no servers."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import workload
from tests.repository import SCRIPTS, Repository
from tests.waiting import WAIT_SECONDS, finish

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository.create(tmp_path, "workload")
    write_plan(repository, "two", run("first", databases=1), run("second", databases=2))
    return repository


def run(name: str, kind: str = "phases", databases: int = 1, **variables: str) -> dict[str, Any]:
    environment = {"server": "postgres", "databases": databases, "standbys": "none", "server_options": {}}
    return {
        "name": name,
        "kind": kind,
        "environment": environment,
        "driver": "eventsql",
        "variables": variables,
        "seconds": 35,
    }


def write_plan(repository: Repository, name: str, *runs: dict[str, Any]) -> None:
    file = repository.root / "runner/workloads" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"workload": name, "kind": "phases", "description": "…", "runs": runs}))
    os.utime(file, (0, 0))


def read(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def test_each_run_has_servers_of_its_own_and_everything_is_drawn(repository: Repository) -> None:
    repository.draw_plots()
    process = repository.start("", "two", "--set", "consumers=5", DB0_HOST="not ours")
    out, err = finish(process)

    assert process.returncode == 0, err
    results = repository.results()
    assert out.splitlines()[-1] == f"Results: {results}"
    assert "=== 1 of 2: two/first, about 60 s, about 2 min with all that follow" in out
    assert "=== 2 of 2: two/second, about 60 s\n" in out
    first, second = read(results / "two/first"), read(results / "two/second")
    assert first["shards"] == ["secret-0", None, None]
    assert second["shards"] == ["secret-0", "secret-1", None]
    arguments = second["arguments"]
    assert arguments[:5] == ["two", "--set", "consumers=5", "--only", "second"]
    assert arguments[-4:] == ["--process", "database-0=4000", "--process", "database-1=4001"]
    assert second["command"] == "bash scripts/run_workload.bash two --only second --set consumers=5"
    drawn = sorted(str(file.relative_to(results)) for file in results.rglob("*.html"))
    assert drawn == ["comparison.html", "two/first/report.html", "two/second/report.html"]
    # The plan, and twice databases and runner.
    repository.assert_nothing_is_left(started=5)


def test_rounds_measure_all_runs_in_turns_with_their_plain_programs(repository: Repository) -> None:
    process = repository.start("", "two", "--rounds", "2", "--plain")
    out, err = finish(process)

    assert process.returncode == 0, err
    titles = [line.split(": ")[1].split(",")[0] for line in out.splitlines() if line.startswith("=== ")]
    assert titles == ["two/first", "two/second"] * 2
    results = repository.results()
    measured = sorted(str(file.parent.relative_to(results)) for file in results.rglob("plain.json"))
    assert measured == [f"two/round-{number}/{run}" for number in (1, 2) for run in ("first", "second")]
    assert all((results / folder / "result.json").exists() for folder in measured)
    # The plan, and four times databases, runner and plain programs.
    repository.assert_nothing_is_left(started=13)


def test_failed_run_does_not_stop_the_others(repository: Repository) -> None:
    process = repository.start("lost", "two")
    out, err = finish(process)

    assert process.returncode == 1
    results = repository.results()
    assert out.splitlines()[-1] == f"Results: {results}"
    assert "Failed: two/first" in err
    assert read(results / "two/second")["passed"]
    repository.assert_nothing_is_left(started=5)


def test_broken_runs_are_named_and_their_servers_stopped(repository: Repository) -> None:
    process = repository.start("fail:runner-run", "two")
    _, err = finish(process)

    assert process.returncode == 1
    assert "two/first failed: the runner ended with status 1" in err
    assert "Failed: two/first\nFailed: two/second\n" in err
    repository.assert_nothing_is_left(started=5)


def test_unknown_server_fails_its_run(repository: Repository) -> None:
    strange = run("first")
    strange["environment"]["server"] = "strange"
    write_plan(repository, "two", strange, run("second"))
    process = repository.start("", "two")
    _, err = finish(process)

    assert process.returncode == 1
    assert "two/first failed: " in err
    assert "strange" in err
    assert "two/second failed" not in err


def test_publish_is_measured_by_the_main_job(repository: Repository) -> None:
    write_plan(repository, "main", run("two-databases", "publish", SHARDS="2", EVENTS_RATE="7"))
    process = repository.start("", "main")
    out, err = finish(process)

    assert process.returncode == 0, err
    folder = repository.results() / "main/two-databases"
    result = read(folder)
    assert result["workload"] == "main"
    assert result["command"] == "SHARDS=2 EVENTS_RATE=7 bash scripts/run_local_benchmark.bash"
    assert (folder / "runner-1.json").exists()
    # The plan, databases, the app, two runners, the summary.
    repository.assert_nothing_is_left(started=6)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_keeps_what_is_measured_and_leaves_no_process(
    repository: Repository, number: signal.Signals, status: int
) -> None:
    process = repository.start("hang", "two")
    assert process.stdout is not None
    while not process.stdout.readline().endswith("measuring\n"):
        pass

    process.send_signal(number)
    out, err = finish(process)

    assert process.returncode == status, err
    results = repository.results()
    assert "1 run skipped" in out
    assert out.splitlines()[-1] == f"Results: {results}"
    assert sorted(folder.name for folder in (results / "two").iterdir()) == ["first"]
    assert read(results / "two/first")["run"] == "first"
    repository.assert_nothing_is_left(started=3)


def test_results_are_not_overwritten(repository: Repository) -> None:
    kept = repository.root / "kept"
    (kept / "two/second").mkdir(parents=True)
    process = repository.start("", "two", "--results", str(kept))
    _, err = finish(process)

    assert process.returncode == 2
    assert f"{kept / 'two/second'} already exists" in err
    assert not (kept / "two/first").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "WORKLOAD is missing"),
        (["three"], "There is no workload three"),
        (["wrong"], "SHARDS must be a number"),
    ],
)
def test_wrong_input_exits_with_2_before_anything_starts(
    repository: Repository, arguments: list[str], message: str
) -> None:
    write_plan(repository, "wrong", run("good", "publish"), run("bad", "publish", SHARDS="many"))
    process = repository.start("", *arguments)
    _, err = finish(process)

    assert process.returncode == 2
    assert message in err
    assert not (repository.root / "results").exists()


def test_list_is_the_runners(repository: Repository) -> None:
    process = repository.start("", "--list")
    out, err = finish(process)

    assert process.returncode == 0, err
    assert "the workloads" in out


@pytest.mark.parametrize(
    ("seconds", "text"), [(25, "25 s"), (119, "2 min"), (3_660, "61 min"), (9_000, "2 h 30 min")]
)
def test_duration_is_approximate(seconds: int, text: str) -> None:
    assert workload.duration(seconds) == text


def bash_without_python(tmp_path: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs code with the library of scripts that need Python, where there is none in PATH."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/requirements.txt").write_text("matplotlib\n")
    bash = shutil.which("bash")
    assert bash is not None
    return subprocess.run(
        [bash, "-c", f"set -euo pipefail; ROOT='{tmp_path}'; source '{SCRIPTS}/lib/python.bash'; {code}"],
        env={"PATH": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )


def test_missing_venv_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    result = bash_without_python(tmp_path, "prepare_plots; echo continues")

    assert result.stdout == "continues\n"
    assert "python3-venv" in result.stderr
    assert "No plots: .venv could not be created" in result.stderr


def test_packages_are_compiled_once_where_the_environment_forbids_it(tmp_path: Path) -> None:
    result = bash_without_python(
        tmp_path,
        'prepare_plots; echo "${PYTHONDONTWRITEBYTECODE-may be written}"',
        PYTHONDONTWRITEBYTECODE="1",
    )

    assert result.stdout == "may be written\n"


def test_help_needs_no_java() -> None:
    result = subprocess.run(
        ["bash", str(SCRIPTS / "run_workload.bash"), "--help"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )

    assert "--results" in result.stdout
    assert "Examples:" in result.stdout
