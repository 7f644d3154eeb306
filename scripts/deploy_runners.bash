#!/usr/bin/env bash
# Deploys the runner to its machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"

usage() {
  cat <<EOF
Usage: RUNNER0_HOST=... [RUNNER1_HOST=... ...] bash scripts/deploy_runners.bash

Copies the packed runner to each machine, and makes it the current version if it starts. It runs only during a
benchmark.

Environment:
  RUNNER0_HOST ...  machines [EVENTS_DB0_HOST ...]
$DEPLOY_ENVIRONMENT

Examples:
  source infra.env && bash scripts/deploy_runners.bash
  RUNNER0_HOST=203.0.113.7 bash scripts/deploy_runners.bash

Exit code: 0 all are ready, 1 one is not, 2 wrong input.
EOF
}

no_arguments "$@"
default_runner_hosts
hosts=$(require_variables RUNNER _HOST)
mapfile -t hosts <<<"$hosts"
rc=0
for host in "${hosts[@]}"; do
  deploy runner "$host" </dev/null || rc=1
done
exit "$rc"
