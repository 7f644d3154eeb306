"""The check of the project's words: banned phrases, exemptions, and errors in the two lists."""

import subprocess
from pathlib import Path

import check_language
import pytest

PARKED = " ".join(("set", "aside"))
LISTS = Path(check_language.__file__).parent / "language"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / "README.md").write_text("Parked events are redriven.\n")
    return root


def run_check(root: Path, allowed: str = "", banned: Path = LISTS / "banned.txt") -> int:
    list_of_allowed = root.parent / "allowed.txt"
    list_of_allowed.write_text(allowed)
    options = ["--root", str(root), "--banned", str(banned), "--allowed", str(list_of_allowed)]
    return check_language.main(options)


def test_clean_file_passes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_check(repository) == 0
    assert capsys.readouterr().out == ""


def test_added_banned_phrase_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "Text.java").write_text(f"class Text {{\n    // The event is {PARKED}.\n}}\n")
    assert run_check(repository) == 1
    assert capsys.readouterr().out == f"Text.java:2: {PARKED} -> use park, parked\n"


@pytest.mark.parametrize(
    "text",
    [
        "/**\n * The event is set\n * aside.\n */\n",
        "# The event is set\n# aside.\n",
        "-- The event is set\n    -- aside.\n",
        'String text = "The event is set "\n        + "aside";\n',
        "The event is set\naside.\n",
    ],
)
def test_phrase_over_two_lines_is_found(
    repository: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (repository / "text").write_text(text)
    assert run_check(repository) == 1
    assert " -> use park, parked" in capsys.readouterr().out


def test_words_of_two_paragraphs_are_no_phrase(repository: Path) -> None:
    (repository / "text").write_text("The set\n\naside\n")
    assert run_check(repository) == 0


@pytest.mark.parametrize(
    "name", ["set" + "Aside", "Set" + "AsideEvent", "set" + "_aside", "MAX" + "_EVENTS", "On" + "Shard"]
)
def test_former_name_is_found(repository: Path, name: str) -> None:
    (repository / "code").write_text(f"x = {name};\n")
    assert run_check(repository) == 1


def test_constant_of_the_jdk_passes(repository: Path) -> None:
    (repository / "code").write_text("x = Integer.MAX_VALUE;\n")
    assert run_check(repository) == 0


def test_path_is_checked(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "Set" + "AsideEvent.java"
    (repository / name).write_text("")
    assert run_check(repository) == 1
    assert "(in the path)" in capsys.readouterr().out


def test_measured_data_and_ignored_files_are_not_read(repository: Path) -> None:
    (repository / ".gitignore").write_text("ignored\n")
    (repository / "ignored").write_text(PARKED)
    (repository / "results").mkdir()
    (repository / "results/report.txt").write_text(PARKED)
    (repository / "picture.png").write_bytes(b"\x89PNG\0" + PARKED.encode())
    assert run_check(repository) == 0


def test_allowed_line_passes(repository: Path) -> None:
    (repository / "glossary.md").write_text(f"not: {PARKED}\n")
    assert run_check(repository, "glossary.md :: ^not: :: names the banned words\n") == 0


def test_other_line_of_a_file_with_an_exemption_fails(repository: Path) -> None:
    (repository / "glossary.md").write_text(f"not: {PARKED}\n{PARKED}\n")
    assert run_check(repository, "glossary.md :: ^not: :: names the banned words\n") == 1


def test_exemption_that_allows_nothing_is_reported(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_check(repository, "# A comment.\n\nREADME.md :: ^gone$ :: once needed\n") == 1
    assert capsys.readouterr().out == f"{repository.parent / 'allowed.txt'}:3: allows nothing, remove it\n"


@pytest.mark.parametrize("allowed", ["README.md :: ^x$\n", "README.md :: ^x$ :: \n", "a :: ( :: b\n"])
def test_malformed_exemption_is_wrong_usage(repository: Path, allowed: str) -> None:
    assert run_check(repository, allowed) == 2


@pytest.mark.parametrize("banned", ["pattern without a word to use\n", "( -> closed\n"])
def test_malformed_rule_is_wrong_usage(repository: Path, banned: str) -> None:
    file = repository.parent / "banned.txt"
    file.write_text(banned)
    assert run_check(repository, banned=file) == 2


def test_missing_list_and_folder_without_git_are_wrong_usage(tmp_path: Path, repository: Path) -> None:
    assert run_check(repository, banned=tmp_path / "missing.txt") == 2
    other = tmp_path / "other"
    other.mkdir()
    assert run_check(other) == 2
