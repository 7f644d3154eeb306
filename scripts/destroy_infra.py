#!/usr/bin/env python3
"""Removes what prepare_infra.py has made at DigitalOcean."""

import sys
from collections.abc import Sequence

from cloud import found, options
from cloud.destroy import destroy, remove_files
from cloud.plan import Plan
from cloud.script import FAILED, run

EXAMPLES = """\
  python3 scripts/destroy_infra.py          # shows what will go, and asks
  python3 scripts/destroy_infra.py --yes
"""


def main(arguments: Sequence[str]) -> int:
    parser = options.parser(
        "Removes everything that has the tag, data included, and nothing else. It cannot be undone.", EXAMPLES
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    chosen = parser.parse_args(arguments)
    plan = Plan.only_tag(chosen.tag)
    files = options.files(chosen)
    api = options.api(chosen)
    there = found.everything(api, plan)
    print("\n".join(there.lines_or_nothing(plan.tag)))
    if there.is_empty:
        if files.tag != plan.tag:
            # It only tells of those that stay.
            remove_files(files, plan.tag)
            return 0
        print(f"files     in {files.folder}: of machines that are gone, or that this token does not show")
    if not chosen.yes and not is_agreed(plan.tag):
        print("Nothing was removed.")
        return FAILED
    destroy(api, plan, there, files, options.patience(chosen))
    print(f"Nothing has the tag {plan.tag} any more.")
    return 0


def is_agreed(tag: str) -> bool:
    """Whether somebody at the terminal types the tag; without a terminal nobody does."""
    try:
        return input(f"Remove all of this for ever? Type {tag} to agree: ").strip() == tag
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
