#!/usr/bin/env python3
"""Checks the text files of the repository for words that the project does not use. See --help."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTS = Path(__file__).resolve().parent / "language"

HELP_END = """\
A line of the banned list is `PATTERN -> WHAT TO USE`, a Python regular expression that ignores case unless it
says (?-i:...), and knows the letters of ASCII only. A space in it matches any gap between two words: a line
break within a comment, a paragraph or a string, too. Paths of files are checked as well.

A line of the allowed list is `PATH :: LINE :: REASON`: a shell pattern of paths, a regular expression found
in the line, and why the line may stay. An entry that allows nothing is an error.

Measured data in results/, lock files and the two lists themselves are not read.

Exit code: 0 nothing found, 1 something found, 2 wrong usage.
"""

# Between two words of a sentence: spaces, or one line break with the marks of a comment or of a string.
GAP = r'(?:[ \t]+|[ \t]*"?[ \t]*\r?\n[ \t]*(?:(?://+|\*+|#+|--+|>+|\+)[ \t]*)*"?[ \t]*)'

NOT_READ = (
    "results/*.json",
    "results/*.jsonl",
    "results/*.csv",
    "results/*.txt",
    "results/*.html",
    "*package-lock.json",
    "mvnw",
    "mvnw.cmd",
    "scripts/language/*",
)


class WrongList(Exception):
    """A line of a list that cannot be read."""


@dataclass(frozen=True)
class Rule:
    pattern: re.Pattern[str]
    use: str


@dataclass(frozen=True)
class Exemption:
    source: str
    path: str
    line: re.Pattern[str]

    def covers(self, finding: "Finding") -> bool:
        return fnmatchcase(finding.path, self.path) and self.line.search(finding.context) is not None


@dataclass(frozen=True)
class Finding:
    """
    A banned phrase.

    `context` holds the whole lines that it stands in, `line` is the number of the first of them.
    """

    path: str
    line: int
    phrase: str
    use: str
    context: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase} -> use {self.use}"


def read_rules(file: Path) -> list[Rule]:
    rules = []
    for source, line in _entries(file):
        pattern, arrow, use = line.rpartition(" -> ")
        if not arrow or not use.strip():
            raise WrongList(f"{source}: expected `PATTERN -> WHAT TO USE`")
        rules.append(Rule(_compiled(source, pattern.strip().replace(" ", GAP)), use.strip()))
    return rules


def read_exemptions(file: Path) -> list[Exemption]:
    exemptions = []
    for source, line in _entries(file):
        fields = [field.strip() for field in line.split(" :: ")]
        if len(fields) != 3 or not all(fields):
            raise WrongList(f"{source}: expected `PATH :: LINE :: REASON`")
        exemptions.append(Exemption(source, fields[0], _compiled(source, fields[1])))
    return exemptions


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise WrongList(f"{file}: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield f"{file}:{number}", line


def _compiled(source: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE | re.ASCII)
    except re.error as error:
        raise WrongList(f"{source}: {error}") from error


def tracked_files(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted(path for path in set(listed.stdout.split("\0")) if path and _is_read(path))


def _is_read(path: str) -> bool:
    return not any(fnmatchcase(path, pattern) for pattern in NOT_READ)


def read_text(file: Path) -> str | None:
    """Returns None for what is no text, and for a file that git still lists but that was deleted."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def check_text(path: str, text: str, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        for match in rule.pattern.finditer(text):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", max(match.end() - 1, match.start()))
            context = text[start : len(text) if end < 0 else end]
            phrase = " ".join(match.group().split())
            yield Finding(path, text.count("\n", 0, start) + 1, phrase, rule.use, context)


def check_file(root: Path, path: str, rules: Sequence[Rule]) -> Iterator[Finding]:
    text = read_text(root / path)
    if text is None:
        return
    for found in check_text(path, path, rules):
        yield Finding(path, found.line, f"{found.phrase} (in the path)", found.use, path)
    yield from check_text(path, text, rules)


def check(root: Path, rules: Sequence[Rule], exemptions: Sequence[Exemption]) -> list[str]:
    """Returns a line for each banned phrase that is not allowed and each exemption that allows nothing."""
    problems = []
    used = set()
    for path in tracked_files(root):
        found = sorted(check_file(root, path, rules), key=lambda finding: finding.line)
        for finding in found:
            covering = [exemption for exemption in exemptions if exemption.covers(finding)]
            used.update(covering)
            if not covering:
                problems.append(str(finding))
    problems += [f"{entry.source}: allows nothing, remove it" for entry in exemptions if entry not in used]
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Prints the banned phrases in the text files of the repository.",
        epilog=HELP_END,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to check [this one]")
    parser.add_argument(
        "--banned", type=Path, default=LISTS / "banned.txt", help="the banned list [%(default)s]"
    )
    parser.add_argument(
        "--allowed", type=Path, default=LISTS / "allowed.txt", help="the allowed list [%(default)s]"
    )
    options = parser.parse_args(arguments)
    try:
        problems = check(options.root, read_rules(options.banned), read_exemptions(options.allowed))
    except WrongList as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{options.root} is no git repository: {error.stderr.strip()}", file=sys.stderr)
        return 2
    print(*problems, sep="\n", end="\n" if problems else "")
    if problems:
        print(f"{len(problems)} problems; the words are in {options.banned}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
