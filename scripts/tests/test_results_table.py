import json
from pathlib import Path
from typing import Any

import pytest
import results_table
from results_table import ROOT, read, replace, table


def newest_set() -> Path:
    return sorted(folder for folder in (ROOT / "results").glob("20*") if folder.is_dir())[-1]


def run(**changes: object) -> dict[str, Any]:
    latency = {"p50": 0.51, "p99": 1234.56}
    return {
        "command": "SHARDS=1 bash scripts/run_local_benchmark.bash",
        "passed": True,
        "publish_rate": 1000.0,
        "consume_rate": 12345.6,
        "publish_latency_ms": latency,
        "end_to_end_latency_ms": latency,
        "cpus": 2,
        "postgres_version": "18.6",
        "fsync": "on",
        "synchronous_commit": "on",
        "java_version": "25",
        "os": "Linux",
        "git_commit": "0123456789",
        **changes,
    }


def test_table_has_a_row_for_each_run_and_the_machine() -> None:
    lines = table([run()]).splitlines()

    assert lines[2] == "| `SHARDS=1` | 12,346/s | 0.5 / 1,234.6 ms | 0.5 / 1,234.6 ms |"
    assert "`fsync=on`, `synchronous_commit=on`" in lines[-1]
    assert lines[-1].endswith("commit 01234567.")


def test_table_different_machines_shows_all() -> None:
    assert "`fsync=off, on`" in table([run(), run(fsync="off")])


def test_table_run_that_did_not_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="did not pass"):
        table([run(passed=False)])


def test_replace_keeps_what_is_around() -> None:
    readme = f"before\n{results_table.BEGIN}\nold\n{results_table.END}\nafter\n"

    assert replace(readme, "new") == readme.replace("old", "new")


def test_main_empty_folder_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        results_table.main([str(tmp_path)])

    assert ended.value.code == 2
    assert "no */result.json" in capsys.readouterr().err


def test_main_writes_the_table_into_the_file(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "result.json").write_text(json.dumps(run()))
    readme = tmp_path / "README.md"
    readme.write_text(f"{results_table.BEGIN}\n{results_table.END}\n")

    assert results_table.main([str(tmp_path), "--readme", str(readme)]) == 0

    assert "12,346/s" in readme.read_text()


def test_readme_shows_the_newest_kept_results() -> None:
    readme = (ROOT / "README.md").read_text()

    assert replace(readme, table(read(newest_set()))) == readme
