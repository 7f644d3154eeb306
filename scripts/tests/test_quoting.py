"""The repository may be in a folder with a blank in its path; 20 tests failed there, and one never ended."""

import re
from pathlib import Path

import pytest
from tests.repository import SCRIPTS

# A path that Python puts into a line of a shell, without quotes around it.
UNQUOTED = re.compile(
    r"""(?:source|exec|cd|bash|ROOT=)\s*\{(?:SCRIPTS|ROOT|STAND_IN|tmp_path|sys\.executable)[^}]*\}"""
)


@pytest.mark.parametrize("file", sorted(SCRIPTS.glob("tests/**/*.py")), ids=lambda file: file.name)
def test_paths_in_lines_of_a_shell_are_quoted(file: Path) -> None:
    lines = [
        line.strip()
        for line in file.read_text().splitlines()
        if UNQUOTED.search(line) and "UserKnownHosts" not in line
    ]

    assert lines == []
