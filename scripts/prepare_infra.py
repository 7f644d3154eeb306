#!/usr/bin/env python3
"""Creates the missing machines of a benchmark at DigitalOcean."""

import sys
from collections.abc import Sequence

from cloud import options
from cloud.prepare import Preparation, show_plan, table
from cloud.script import run

EXAMPLES = """\
  source venv/bin/activate     # made by scripts/init_python_env.bash
  python3 scripts/prepare_infra.py --dry-run
  python3 scripts/prepare_infra.py --allow 203.0.113.7/32      # also to change it later
  python3 scripts/prepare_infra.py --databases 1 --events-db-size s-2vcpu-4gb-amd --region ams3
"""


def main(arguments: Sequence[str]) -> int:
    parser = options.parser(
        "Creates a VPC, a firewall, a machine for the consumer and machines for databases, where they are "
        "missing, waits until they can be used, and writes infra.env, infra.json and "
        "infra-passwords.env. They cost money until destroy_infra.py removes them.",
        EXAMPLES,
    )
    options.add_plan(parser)
    parser.add_argument("--dry-run", action="store_true", help="show plan and price, create nothing")
    chosen = parser.parse_args(arguments)
    plan = options.plan(chosen)
    api = options.api(chosen)
    files = options.files(chosen)
    preparation = Preparation(api, plan, files, options.polling(chosen))
    if chosen.dry_run:
        show_plan(api, plan, preparation.machines())
        return 0
    fingerprint = options.fingerprint()
    with files.locked():
        machines = preparation.run(fingerprint)
    print(f"\n{table(machines)}\n")
    print(f"Addresses: source {files.variables} (also in {files.description.name})")
    print(f"Passwords of the databases (keep them secret): {files.passwords}")
    return 0


if __name__ == "__main__":
    sys.exit(run(lambda: main(sys.argv[1:])))
