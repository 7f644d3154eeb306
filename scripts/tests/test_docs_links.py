"""Documents lead to what is there (files, headings, tests), and the README stays short."""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.repository import SCRIPTS

ROOT = SCRIPTS.parent
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
TEST_COMMAND = re.compile(r"\brun_test\.bash '?([\w#*,]+)")
TEST = re.compile(r"`([A-Z]\w*[a-z]\w*(?:IT|Test|Contract))(?:\.(\w+)(…)?)?`")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [ROOT / line for line in listed.stdout.splitlines()]
    return [file for file in files if file.exists()]


@cache
def anchors(file: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    used: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(text):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        found.add(f"{slug}-{used[slug]}" if used[slug] else slug)
        used[slug] += 1
    return found


def dead_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    dead = []
    for target in LINK.findall(CODE.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        leads_somewhere = file.exists() and (not anchor or (file.suffix == ".md" and anchor in anchors(file)))
        if not leads_somewhere:
            dead.append(target)
    return dead


def with_superclasses(name: str, sources: dict[str, str]) -> str:
    """The source of a test, and of those whose methods it and its nested classes inherit."""
    source = sources.get(name, "")
    parents = re.findall(r"\bclass \w+ extends (\w+)", source)
    return source + "".join(with_superclasses(parent, sources) for parent in parents)


def missing_tests(page: Path, sources: dict[str, str]) -> list[str]:
    """The Java tests that a page names and that do not exist; `…`, in commands `*`, ends a name early."""
    text = page.read_text()
    named = TEST.findall(text)
    for chosen in ",".join(TEST_COMMAND.findall(text)).split(","):
        name, _, method = chosen.partition("#")
        named += [(name, method.rstrip("*"), method.endswith("*"))] if name else []
    missing = []
    for name, method, shortened in named:
        end = "" if shortened else r"\("
        if name not in sources or (
            method and not re.search(rf"\bvoid {method}{end}", with_superclasses(name, sources))
        ):
            missing.append(f"{name}.{method}" if method else name)
    return missing


def pages() -> list[Path]:
    return [page for page in tracked("*.md") if "results" not in page.relative_to(ROOT).parts[:1]] + [
        ROOT / "results" / "README.md"
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_tests_that_documents_name_exist() -> None:
    sources = {file.stem: file.read_text() for file in tracked("*.java") if "/src/test/" in str(file)}

    assert {page.name: missing for page in pages() if (missing := missing_tests(page, sources))} == {}


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# The `first` one\n## Again\n## Again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n[a](there.md) [b](there.md#the-first-one) [c](there.md#again-1) [d](#page) [e](https://x.test)\n"
        "`[f](in-code.md)`\n```\n[g](in-a-block.md)\n```\n"
        "[h](missing.md) [i](there.md#missing) [j](#missing) ![k](missing.png)\n"
    )

    assert dead_links(page) == ["missing.md", "there.md#missing", "#missing", "missing.png"]


def test_missing_tests_are_found(tmp_path: Path) -> None:
    sources = {"OneIT": "class OneIT extends Base {}\n", "Base": "    void a_b_isC() {}\n"}
    page = tmp_path / "page.md"
    page.write_text(
        "`OneIT` `OneIT.a_b…` `OneIT.a_b_isC` `OneIT.a_b` `OneIT.b…` `TwoIT`\n"
        "`run_test.bash 'OneIT#a_b*' -Dx=1` `run_test.bash OneIT,TwoIT` `run_test.bash 'OneIT#c*,OneIT'`\n"
    )

    assert missing_tests(page, sources) == ["OneIT.a_b", "OneIT.b", "TwoIT", "TwoIT", "OneIT.c"]


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) < 1500
