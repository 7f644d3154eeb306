"""compare_commits.py: its statistics, and a whole comparison of two commits of a tiny repository."""

import json
import subprocess
from pathlib import Path

import compare_commits
import pytest

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
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", f"rate {rate}"], cwd=folder, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return head.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.setattr(compare_commits, "ROOT", tmp_path)
    monkeypatch.setattr(compare_commits, "FOLDER", tmp_path / "target/compare-commits")
    return tmp_path


def test_ratios_are_paired_round_by_round() -> None:
    interval = compare_commits.ratios([100, 200, 400], [110, 220, 440])
    assert (interval.median, interval.low, interval.high) == pytest.approx((1.1, 1.1, 1.1))


def test_ratios_of_unequal_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        compare_commits.ratios([1, 2], [1])


def test_every_round_runs_both_commits_in_alternating_order() -> None:
    assert [side for _, side in compare_commits.turns(3)] == ["a", "b", "b", "a", "a", "b"]


def test_two_commits_are_measured_and_compared(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow, fast = commit(repository, 100), commit(repository, 150)
    assert compare_commits.main(["--rounds", "2", "--run", "FACTOR=3", slow, fast]) == 0
    rows = json.loads((repository / "target/compare-commits/comparison.json").read_text())["rows"]
    assert rows[0]["a"] == [300, 300]
    assert rows[0]["ratio"] == pytest.approx(1.5)
    assert "1.500 (1.500 to 1.500)" in capsys.readouterr().out
    trees = subprocess.run(
        ["git", "worktree", "list"], cwd=repository, check=True, capture_output=True, text=True
    )
    assert len(trees.stdout.splitlines()) == 1


def test_a_failed_run_aborts_the_comparison(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = commit(repository, 100)
    assert compare_commits.main(["--rounds", "2", "--run", "NO_FACTOR=1", broken, broken]) == 1
    assert "Comparison aborted" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--rounds", "1", "a", "b"], ["--run", "unknown", "a", "b"], ["a"]])
def test_wrong_usage_names_the_argument(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compare_commits.main(words)
    assert ended.value.code == 2
