#!/usr/bin/env python3
"""Shows the machines of a benchmark at DigitalOcean, and what they cost."""

import sys
from collections.abc import Sequence

from cloud import inventory, options
from cloud.plan import Plan, Price
from cloud.script import run

EXAMPLES = """\
  python3 scripts/show_infra.py
  python3 scripts/show_infra.py --tag my-benchmark
"""


def main(arguments: Sequence[str]) -> int:
    parser = options.parser(
        "Shows everything that has the tag, with addresses and price. Changes nothing.", EXAMPLES
    )
    chosen = parser.parse_args(arguments)
    plan = Plan.only_tag(chosen.tag)
    api = options.api(chosen)
    present = inventory.read_inventory(api, plan)
    print("\n".join(present.lines_or_nothing(plan.tag)))
    if present.is_empty:
        return 0
    for droplet in present.droplets:
        addresses = ", ".join(
            f"{network['ip_address']} ({network['type']})" for network in droplet["networks"].get("v4", [])
        )
        print(f"{droplet['name']}: {addresses or 'no address yet'}")
    sizes = [droplet["size"] for droplet in present.droplets]
    price = Price(
        sum(float(size["price_hourly"]) for size in sizes),
        sum(float(size["price_monthly"]) for size in sizes),
    )
    print(f"Together: {price}")
    return 0


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
