"""The repository keeps what was measured, never what is drawn from it."""

import subprocess
from pathlib import Path

import compact_results
import pytest
from results_table import ROOT

BYTES_MAX = 12_000_000
LINES_MAX = 40_000


def kept() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "results"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / path for path in listed.stdout.split("\0") if path and (ROOT / path).exists()]


def test_kept_results_hold_nothing_that_can_be_drawn() -> None:
    pages = (
        ROOT / "README.md",
        ROOT / "results/README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "results").glob("*/README.md"),
    )
    shown = "".join(page.read_text() for page in pages)
    ballast = [
        str(file.relative_to(ROOT))
        for file in kept()
        if file.suffix not in (".json", ".txt", ".md") and file.name not in shown
    ]
    assert ballast == []


def test_kept_results_are_small() -> None:
    contents = [file.read_bytes() for file in kept()]
    assert sum(len(content) for content in contents) <= BYTES_MAX
    assert sum(content.count(b"\n") for content in contents) <= LINES_MAX


def test_compact_rounds_only_what_is_sampled() -> None:
    text = (
        '{"seconds": 600.123456789, "series": {"rate": [1999.123456789, 0.5]},'
        ' "resources": {"columns": {"cpu": [0, 12345678, 0.123456789, 1234567.6, 9999.6]}}}'
    )
    assert compact_results.compact(text) == (
        '{\n"seconds":600.123456789,\n"series":{"rate":[1999.12,0.5]},\n'
        '"resources":{"columns":{"cpu":[0,12345678,0.1235,1234568,10000]}}\n}\n'
    )


def test_compact_keeps_every_value_in_a_line_for_each_field() -> None:
    assert compact_results.compact('{ "a" : [ 1, 2.50 ],\n "b" : { "c" : "µs" } }') == (
        '{\n"a":[1,2.5],\n"b":{"c":"µs"}\n}\n'
    )


def test_compact_results_deletes_what_is_drawn(tmp_path: Path) -> None:
    run = tmp_path / "set/run"
    run.mkdir(parents=True)
    for name in ("report.html", "series.csv", "trials.jsonl", "report.txt", "rates.png"):
        (run / name).touch()
    (run / "result.json").write_text('{"kind": "publish"}')

    assert compact_results.main([str(tmp_path)]) == 0

    assert sorted(file.name for file in run.iterdir()) == ["rates.png", "report.txt", "result.json"]
    assert (run / "result.json").read_text() == '{\n"kind":"publish"\n}\n'


def test_compact_results_leaves_out_histograms_of_rounds_only(tmp_path: Path) -> None:
    once, round_1 = tmp_path / "compare/once", tmp_path / "compare/round-1/run"
    for run in (once, round_1):
        run.mkdir(parents=True)
        (run / "result.json").write_text('{"phases": [1], "histograms": {}, "series": {}}')

    assert compact_results.main([str(tmp_path)]) == 0

    assert (once / "result.json").read_text() == '{\n"phases":[1],\n"histograms":{},\n"series":{}\n}\n'
    assert (round_1 / "result.json").read_text() == '{\n"phases":[1],\n"series":{}\n}\n'


def test_compact_results_without_a_result_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as exit_:
        compact_results.main([str(tmp_path)])
    assert exit_.value.code == 2
