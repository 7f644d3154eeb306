import os
from pathlib import Path

import pytest
from benchmark import build


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A repository whose jars were built after its sources were written."""
    for source in (
        "pom.xml",
        "events-db/init.sql",
        "eventsql/core/src/main/java/A.java",
        "app/src/test/java/T.java",
    ):
        write(tmp_path / source, at=1_000)
    for jar in build.JARS:
        write(tmp_path / jar, at=500)
    write(tmp_path / build.STAMP, at=2_000)
    return tmp_path


def write(file: Path, at: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    os.utime(file, (at, at))


def test_is_up_to_date_after_a_build(built: Path) -> None:
    assert build.is_up_to_date(built)


@pytest.mark.parametrize(
    "source", ["pom.xml", "events-db/init.sql", "eventsql/core/src/main/java/A.java", "runner/cli/pom.xml"]
)
def test_is_up_to_date_not_when_a_source_is_newer(built: Path, source: str) -> None:
    write(built / source, at=3_000)

    assert not build.is_up_to_date(built)


@pytest.mark.parametrize("other", ["app/src/test/java/T.java", "app/target/classes/A.class"])
def test_is_up_to_date_tests_and_outputs_do_not_count(built: Path, other: str) -> None:
    write(built / other, at=3_000)

    assert build.is_up_to_date(built)


@pytest.mark.parametrize("missing", [*build.JARS, build.STAMP])
def test_is_up_to_date_not_when_something_is_missing(built: Path, missing: Path) -> None:
    (built / missing).unlink()

    assert not build.is_up_to_date(built)


def test_git_commit_outside_of_a_repository_is_unknown(tmp_path: Path) -> None:
    assert build.git_commit(tmp_path) == "unknown"
