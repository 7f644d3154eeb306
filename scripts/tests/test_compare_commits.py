"""compare_commits.py: its statistics, and a whole comparison of two commits of a tiny repository."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import compare_commits
import pytest
from tests.waiting import WAIT_SECONDS

BENCHMARK = """
import json, os
from pathlib import Path
result = Path(os.environ["RESULTS_DIR"]) / "result.json"
result.parent.mkdir(parents=True, exist_ok=True)
result.write_text(json.dumps({"publish_rate": RATE * int(os.environ["FACTOR"]), "consume_rate": RATE}))
print("Results:", result)
"""


def commit(folder: Path, rate: int) -> str:
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "local_benchmark.py").write_text(BENCHMARK.replace("RATE", str(rate)))
    return commit_all(folder)


def commit_all(folder: Path) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "test"], cwd=folder, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return head.stdout.strip()


def work_trees(folder: Path) -> int:
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=folder, check=True, capture_output=True, text=True
    )
    return len(listed.stdout.splitlines())


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setattr(compare_commits, "ROOT", tmp_path)
    monkeypatch.setattr(compare_commits, "FOLDER", tmp_path / "target/compare-commits")
    return tmp_path


def test_figures_at_a_rate_include_latencies_and_processors() -> None:
    result = {
        "publish_rate": 1000.0,
        "consume_rate": 990.0,
        "rate_asked": 1000,
        "end_to_end_latency_ms": {"p50": 2.5, "p99": 8.0},
        "resources": {
            "columns": {
                "app.cpu_cores": [0, 0.1, None, 0.3],
                "database-0.cpu_cores": [9, 0.5, 0.5],
                "app.rss_mb": [1],
            }
        },
    }
    assert compare_commits.figures(result) == pytest.approx(
        {"publish_rate": 1000, "consume_rate": 990, "p50 ms": 2.5, "p99 ms": 8.0, "cpu µs/event": 700}
    )


def test_figures_at_full_speed_are_rates_only() -> None:
    result = {"publish_rate": 2.0, "consume_rate": 1.0, "rate_asked": 0, "end_to_end_latency_ms": {"p50": 9}}
    assert compare_commits.figures(result) == {"publish_rate": 2, "consume_rate": 1}


def test_every_round_runs_both_commits_in_alternating_order() -> None:
    assert [side for _, side in compare_commits.turns(3)] == ["a", "b", "b", "a", "a", "b"]


def test_two_commits_are_measured_and_compared(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = commit(repository, 100), commit(repository, 150)
    assert compare_commits.main(["--rounds", "2", "--run", "FACTOR=3", slow, fast]) == 0
    rows = json.loads((repository / "target/compare-commits/comparison.json").read_text())["rows"]
    assert rows[0]["a"] == [300, 300]
    assert rows[0]["ratio"] == pytest.approx(1.5)
    assert "1.500 (1.500 to 1.500)" in capsys.readouterr().out
    assert work_trees(repository) == 1


def test_a_failed_run_aborts_the_comparison(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = commit(repository, 100)
    assert compare_commits.main(["--rounds", "2", "--run", "NO_FACTOR=1", broken, broken]) == 1
    assert "Comparison aborted" in capsys.readouterr().err


@pytest.mark.parametrize("complete", [True, False])
def test_work_tree_of_a_killed_comparison_is_replaced(repository: Path, complete: bool) -> None:
    left = repository / f"target/compare-commits/a-{commit(repository, 100)[:12]}"
    subprocess.run(["git", "worktree", "add", "-q", "--detach", left, "HEAD"], cwd=repository, check=True)
    # As git does until it is complete.
    subprocess.run(["git", "worktree", "lock", left], cwd=repository, check=True)
    (left / "changed").touch()
    if not complete:
        (left / ".git").unlink()

    with compare_commits.work_tree("a", "HEAD") as folder:
        assert folder == left
        assert (folder / "scripts/local_benchmark.py").exists()
        assert not (folder / "changed").exists()
    assert work_trees(repository) == 1


@pytest.mark.parametrize("words", [["--rounds", "1", "a", "b"], ["--run", "unknown", "a", "b"], ["a"]])
def test_wrong_usage_names_the_argument(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compare_commits.main(words)
    assert ended.value.code == 2


BENCHMARK_UNTIL_SIGTERM = """
import signal, sys, time
from pathlib import Path
here = Path("..").resolve()
def stop(number, frame):
    (here / "cleaned-up").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, signal.SIG_IGN)
(here / "started").touch()
time.sleep(60)
"""

COMPARE = """
import sys
from pathlib import Path
import compare_commits
from benchmark.signals import Signals
compare_commits.ROOT = Path(sys.argv[1])
compare_commits.FOLDER = compare_commits.ROOT / "target/compare-commits"
Signals().install()
sys.exit(compare_commits.main(["--rounds", "2", "--run", "A=1", "HEAD", "HEAD"]))
"""


# Waits at the end of `git worktree add`.
POST_CHECKOUT = """#!/bin/sh
touch "{0}/adding"
until [ -e "{0}/interrupted" ]; do sleep 0.05; done
"""


def start_comparison(repository: Path, until: Path) -> subprocess.Popen[bytes]:
    """Starts a comparison and waits for the given file."""
    scripts = Path(compare_commits.__file__).parent
    comparison = subprocess.Popen([sys.executable, "-c", COMPARE, str(repository)], cwd=scripts)
    deadline = time.monotonic() + WAIT_SECONDS
    while not until.exists() and time.monotonic() < deadline:
        assert comparison.poll() is None
        time.sleep(0.05)
    return comparison


def test_an_interrupted_comparison_lets_the_benchmark_clean_up(repository: Path) -> None:
    commit(repository, 100)
    (repository / "scripts/local_benchmark.py").write_text(BENCHMARK_UNTIL_SIGTERM)
    commit_all(repository)
    folder = repository / "target/compare-commits"
    comparison = start_comparison(repository, until=folder / "started")
    comparison.send_signal(signal.SIGINT)
    assert comparison.wait(timeout=WAIT_SECONDS) == 130
    assert (folder / "cleaned-up").exists()
    assert work_trees(repository) == 1


def test_a_comparison_interrupted_while_it_checks_out_leaves_no_work_tree(repository: Path) -> None:
    commit(repository, 100)
    hook = repository / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(POST_CHECKOUT.format(repository))
    hook.chmod(0o755)
    comparison = start_comparison(repository, until=repository / "adding")
    comparison.send_signal(signal.SIGTERM)
    (repository / "interrupted").touch()
    assert comparison.wait(timeout=WAIT_SECONDS) == 143
    assert work_trees(repository) == 1
