#!/usr/bin/env python3
"""Shows the machines of a benchmark at DigitalOcean, and what they cost."""

import sys
from collections.abc import Sequence

from cloud import inventory, options
from cloud.plan import Plan
from cloud.resources import Price
from cloud.script import run

EXAMPLES = """\
  python3 scripts/show_infra.py
  python3 scripts/show_infra.py --tag my-benchmark
"""


def main(arguments: Sequence[str]) -> int:
    parser = options.parser(
        "Shows everything that prepare_infra.py has created for the tag, with addresses and price, and what "
        "else has the tag. Changes nothing.",
        EXAMPLES,
    )
    chosen = parser.parse_args(arguments)
    plan = Plan.only_tag(options.tag(chosen))
    files = options.files(chosen)
    api = options.api(chosen)
    present = inventory.read_inventory(api, plan, files.droplet_ids(plan.tag))
    print("\n".join(present.lines_or_nothing()))
    if files.tag not in (None, plan.tag):
        print(f"The machines of {files.description} have the tag {files.tag}, and are not shown.")
    for droplet in present.droplets:
        addresses = [
            f"{address} ({kind})"
            for kind, address in (("public", droplet.public), ("private", droplet.private))
            if address is not None
        ]
        print(f"{droplet.name}: {', '.join(addresses) or 'no address yet'}")
    if present.droplets:
        print(f"Together: {Price.sum(droplet.price for droplet in present.droplets)}")
    for line in inventory.other_tags(api, plan):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
