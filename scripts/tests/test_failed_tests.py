"""The failed and flaky tests that run_tests.bash lists, from reports as Maven's plugins write them."""

import subprocess
from pathlib import Path

from tests.repository import SCRIPTS

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="io.eventsql.SomeIT" time="3.4" tests="4" errors="0" skipped="1" failures="1" flakes="1">
  <testcase name="passes" classname="io.eventsql.SomeIT" time="0.1"/>
  <testcase name="isSkipped" classname="io.eventsql.SomeIT"><skipped message="none"/></testcase>
  <testcase name="failsTwice" classname="io.eventsql.SomeIT" time="0.1">
    <failure message="expected: 1&#10; but was: 2" type="AssertionFailedError"><![CDATA[trace]]></failure>
    <rerunFailure message="expected: 1&#10; but was: 3" type="AssertionError"><stackTrace/></rerunFailure>
  </testcase>
  <testcase name="passesWhenRepeated" classname="io.eventsql.SomeIT" time="0.1">
    <flakyFailure message="not within 120 s" type="ConditionTimeoutException"><stackTrace/></flakyFailure>
  </testcase>
</testsuite>
"""


def awk(script: str, report: Path) -> list[str]:
    command = ["awk", "-f", str(SCRIPTS / "lib" / script), str(report)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_failed_and_flaky_tests_are_listed_with_their_failures(tmp_path: Path) -> None:
    report = tmp_path / "TEST-SomeIT.xml"
    report.write_text(REPORT)
    assert awk("failed_tests.awk", report) == [
        "FAILED  io.eventsql.SomeIT#failsTwice: expected: 1  but was: 2",
        "FLAKY   io.eventsql.SomeIT#passesWhenRepeated: not within 120 s",
    ]
    assert awk("test_totals.awk", report) == ["2 1 1"]
