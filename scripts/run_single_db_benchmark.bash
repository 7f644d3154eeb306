#!/usr/bin/env bash
# Measures one runner and one database on deployed machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"
source "$ROOT/scripts/lib/remote_benchmark.bash"

usage() {
  cat <<EOF
Usage: RUNNER_HOST=... bash scripts/run_single_db_benchmark.bash

One runner publishes to the first database (or with KEYED=true to all); the app consumes. Everything measured
goes to results/<name>/.

Environment:
  RUNNER_HOST        the runner's machine [RUNNER0_HOST, EVENTS_DB0_HOST]
$BENCHMARK_ENVIRONMENT

Examples:
  source infra.env && EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000 bash scripts/run_single_db_benchmark.bash
  source infra.env && EVENTS_RATE=0 RESULT_NAME=cloud-as-fast-as-possible bash scripts/run_single_db_benchmark.bash

Exit code: 0 good; 1 an event was lost, duplicated, out of order, failed or late, or a step failed; 2 wrong input;
130 after Ctrl-C.
EOF
}

no_arguments "$@"
default_runner_hosts
host=$(require_variable RUNNER_HOST)
command="$(set_variables "${RUNNER_VARIABLES[@]}" | tr '\n' ' ')bash scripts/run_single_db_benchmark.bash"
remote_benchmark "$command" "$host"
