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
    plan = Plan.only_tag(chosen.tag)
    api = options.api(chosen)
    present = inventory.read_inventory(api, plan, options.files(chosen).droplet_ids(plan.tag))
    print("\n".join(present.lines_or_nothing()))
    if present.is_empty:
        return 0
    for droplet in present.droplets:
        addresses = [
            f"{address} ({kind})"
            for kind, address in (("public", droplet.public), ("private", droplet.private))
            if address is not None
        ]
        print(f"{droplet.name}: {', '.join(addresses) or 'no address yet'}")
    price = Price.sum(droplet.price for droplet in present.droplets)
    print(f"Together: {price}")
    return 0


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
