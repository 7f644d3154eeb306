"""docs/schema.md knows all files and error codes; its command for psql applies the files in their order."""

import re
import subprocess

from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
PAGE = (ROOT / "docs/schema.md").read_text()
MIGRATION = ROOT / "eventsql/core/src/main/resources/io/eventsql/db/migration"


def test_every_error_code_that_a_function_raises_is_in_the_table() -> None:
    raised = {
        code for file in MIGRATION.glob("*/V*.sql") for code in re.findall(r"'(ES\d{3})'", file.read_text())
    }
    assert len(raised) > 20
    assert re.findall(r"^\| `(ES\d{3})` \|", PAGE, re.MULTILINE) == sorted(raised)


def test_the_table_has_all_files_in_their_order() -> None:
    listed = re.findall(
        r"^\| \[`(\w+/V\d+__\w+\.sql)`\]\(\.\./(\S+)\) \| .+ \| (\w+ ?\w*) \|$", PAGE, re.MULTILINE
    )
    files = sorted(MIGRATION.glob("*/V*.sql"), key=lambda file: int(file.name[1:].partition("__")[0]))
    assert listed == [
        (
            file.relative_to(MIGRATION).as_posix(),
            file.relative_to(ROOT).as_posix(),
            {"outbox": "every database", "shard": "shards"}[file.parent.name],
        )
        for file in files
    ]


def test_the_command_for_psql_applies_all_files_in_their_order() -> None:
    (listing,) = re.findall(r"\$\((ls \*/V\*\.sql .*)\)$", PAGE, re.MULTILINE)
    listed = subprocess.run(
        ["bash", "-c", listing], cwd=MIGRATION, check=True, capture_output=True, text=True
    )
    options = listed.stdout.split()
    assert options[0::2] == ["-f"] * (len(options) // 2)
    versions = [int(re.findall(r"/V(\d+)__", file)[0]) for file in options[1::2]]
    assert versions == list(range(1, len(list(MIGRATION.glob("*/V*.sql"))) + 1))
