#!/usr/bin/env bash
# Runs the whole series on deployed machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"

usage() {
  cat <<'EOF'
Usage: bash scripts/run_all_benchmarks.bash

Runs one benchmark after the other, on one database and on all, at fixed rates and as fast as possible. A failed
one does not stop the series; one whose folder is there with a result is left out, so that an interrupted series
goes on under the same name.

Environment: as for scripts/run_multiple_dbs_benchmark.bash, and
  SERIES_NAME  folder in results/ [cloud-<UTC date>]

Example:
  source infra.env && bash scripts/run_all_benchmarks.bash

Exit code: 0 all good, 1 one was not, 2 wrong input, 130 after Ctrl-C.
EOF
}

no_arguments "$@"
series=${SERIES_NAME:-cloud-$(date -u +%Y-%m-%d)}
trap 'exit 130' INT
rc=0

# run NAME single|multiple VARIABLE=value...
run() {
  local name=$series/$1 kind=$2 script=run_single_db_benchmark status=0
  shift 2
  if [[ -f $ROOT/results/$name/result.json ]]; then
    echo "=== $name: measured already"
    return
  fi
  # What was broken off is kept beside, so that nobody takes it for a result.
  [[ ! -e $ROOT/results/$name ]] ||
    mv "$ROOT/results/$name" "$ROOT/results/$name-broken-off-$(date -u +%H-%M-%S)"
  [[ $kind == single ]] || script=run_multiple_dbs_benchmark
  echo "=== $name"
  env "$@" RESULT_NAME="$name" bash "$ROOT/scripts/$script.bash" || status=$?
  case $status in
    0) ;;
    2 | 130 | 143) exit "$status" ;;
    *) rc=1 ;;
  esac
}

run 1-database-1000 single EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000
run 1-database-5000 single EVENTS_RATE=5000 EVENTS_TO_PUBLISH=300000
run 1-database-fastest single EVENTS_RATE=0 EVENTS_TO_PUBLISH=1000000
run 1-database-batches single EVENTS_RATE=0 EVENTS_BATCH_SIZE=100 CALLERS=4 EVENTS_TO_PUBLISH=3000000
run all-databases-1000 multiple EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000
run all-databases-5000 multiple EVENTS_RATE=5000 EVENTS_TO_PUBLISH=300000
run all-databases-fastest multiple EVENTS_RATE=0 EVENTS_TO_PUBLISH=1000000
run all-databases-batches multiple EVENTS_RATE=0 EVENTS_BATCH_SIZE=100 CALLERS=4 EVENTS_TO_PUBLISH=3000000
exit "$rc"
