#!/usr/bin/env python3
"""Removes what prepare_infra.py has created at DigitalOcean."""

import sys
from collections.abc import Sequence

from cloud import inventory, options
from cloud.destroy import destroy, remove_files
from cloud.plan import Plan
from cloud.script import FAILED, run

EXAMPLES = """\
  python3 scripts/destroy_infra.py          # shows what will be removed, and asks
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
    present = inventory.read_inventory(api, plan)
    print("\n".join(present.lines_or_nothing(plan.tag)))
    if present.is_empty:
        if files.tag != plan.tag:
            # Only prints which files are kept.
            remove_files(files, plan.tag)
            return 0
        print(
            f"files     in {files.folder}: of machines that no longer exist, or that this token may not list"
        )
    if not chosen.yes and not is_agreed(plan.tag):
        print("Nothing was removed.")
        return FAILED
    destroy(api, plan, present, files, options.polling(chosen))
    print(f"Nothing has the tag {plan.tag} any more.")
    return 0


def is_agreed(tag: str) -> bool:
    """Whether the user types the tag; False without a terminal."""
    try:
        return input(f"Remove all of this permanently? Type {tag} to agree: ").strip() == tag
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
