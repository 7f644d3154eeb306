#!/usr/bin/env python3
"""Removes what prepare_infra.py has created at DigitalOcean."""

import sys
from collections.abc import Sequence

from cloud import inventory, options
from cloud.api import Api
from cloud.destroy import destroy, remove_files
from cloud.files import InfraFiles
from cloud.plan import Plan
from cloud.polling import Polling
from cloud.script import FAILED, run

EXAMPLES = """\
  python3 scripts/destroy_infra.py          # shows what will be removed, and asks
  python3 scripts/destroy_infra.py --yes
"""


def main(arguments: Sequence[str]) -> int:
    parser = options.parser(
        "Removes everything that prepare_infra.py has created for the tag, data included, and nothing else: "
        "what only has the tag, such as another project's machines, is listed and stays. This is final.",
        EXAMPLES,
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    chosen = parser.parse_args(arguments)
    plan = Plan.only_tag(options.tag(chosen))
    files = options.files(chosen)
    api = options.api(chosen)
    with files.locked():
        status = removed(plan, files, api, options.polling(chosen), chosen.yes)
    for line in inventory.other_tags(api, plan):
        print(line)
    return status


def removed(plan: Plan, files: InfraFiles, api: Api, polling: Polling, is_agreed_already: bool) -> int:
    present = inventory.read_inventory(api, plan, files.droplet_ids(plan.tag))
    print("\n".join(present.lines_or_nothing()))
    if present.is_empty:
        if files.tag != plan.tag:
            # Only prints which files are kept.
            remove_files(files, plan.tag)
            return 0
        print(
            f"files     in {files.folder}: of machines that no longer exist, or that this token may not list"
        )
    if not is_agreed_already and not is_agreed(plan.tag):
        print("Nothing was removed.")
        return FAILED
    destroy(api, plan, present, files, polling)
    return 0


def is_agreed(tag: str) -> bool:
    """Whether the user types the tag; False without a terminal."""
    try:
        return input(f"Remove all of this permanently? Type {tag} to agree: ").strip() == tag
    except EOFError:
        return False


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
