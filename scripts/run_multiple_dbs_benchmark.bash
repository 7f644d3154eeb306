#!/usr/bin/env bash
# Measures several runners and databases on deployed machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"
source "$ROOT/scripts/lib/remote_benchmark.bash"

usage() {
  cat <<EOF
Usage: RUNNER0_HOST=... RUNNER1_HOST=... RUNNER2_HOST=... bash scripts/run_multiple_dbs_benchmark.bash

Runners start at the same moment, each publishes to its own database (or with KEYED=true to all); the app
consumes from all. Everything measured goes to results/<name>/.

Environment:
  RUNNER0_HOST ...   the runners' machines [EVENTS_DB0_HOST ...]
$BENCHMARK_ENVIRONMENT

Examples:
  source infra.env && bash scripts/run_multiple_dbs_benchmark.bash
  source infra.env && EVENTS_RATE=0 KEYED=true bash scripts/run_multiple_dbs_benchmark.bash

Exit code: 0 good; 1 an event was lost, duplicated, out of order, failed or late, or a step failed; 2 wrong input;
130 after Ctrl-C.
EOF
}

no_arguments "$@"
default_runner_hosts
hosts=$(require_variables RUNNER _HOST)
mapfile -t hosts <<<"$hosts"
command="$(set_variables "${RUNNER_VARIABLES[@]}" | tr '\n' ' ')bash scripts/run_multiple_dbs_benchmark.bash"
remote_benchmark "$command" "${hosts[@]}"
