#!/usr/bin/env bash
# Runs the whole series on deployed machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"
source "$ROOT/scripts/lib/remote_benchmark.bash"

usage() {
  cat <<'EOF'
Usage: bash scripts/run_all_benchmarks.bash

Runs one benchmark after the other, on one database and on all, at 1,000, 5,000 and 10,000 events per second of each
runner (with three databases 3 × as many), as fast as possible, and in batches. A failed
one does not stop the series. Completed ones are skipped, so that an interrupted series resumes under the same
name; to measure one again, remove its folder.

Environment: as for scripts/run_multiple_dbs_benchmark.bash, and
  SERIES_NAME  folder in results/ [cloud-<UTC date>]

Example:
  source infra.env && bash scripts/run_all_benchmarks.bash

Exit code: 0 all good, 1 one failed, now or before, 2 wrong input or another benchmark is running, 130 after
Ctrl-C, 143 after SIGTERM (what the current benchmark has measured until then is fetched, and it is measured again
the next time).
EOF
}

no_arguments "$@"
series=${SERIES_NAME:-cloud-$(date -u +%Y-%m-%d)}
check_result_name SERIES_NAME "$series"
rc=0
benchmark=''
trap 'stop_benchmark INT 130' INT
trap 'stop_benchmark TERM 143' TERM HUP
stop_status=0

# Forwards a signal to the current benchmark, whose process group a terminal's Ctrl-C does not reach.
# shellcheck disable=SC2317  # the traps call it
stop_benchmark() {
  stop_status=$2
  [[ -n $benchmark ]] || exit "$stop_status"
  kill "-$1" "$benchmark" 2>/dev/null || true
}

# run NAME single|multiple VARIABLE=value...
run() {
  local name=$series/$1 kind=$2 script=run_single_db_benchmark status=0 folder=$ROOT/results/$series/$1
  shift 2
  if [[ -s $folder/exit-code ]]; then
    if [[ $(<"$folder/exit-code") == 0 ]]; then
      echo "=== $name: already measured"
    else
      echo "=== $name: already measured, and failed, see $folder/report.txt; to measure it again, remove $folder" >&2
      rc=1
    fi
    return
  fi
  # The running benchmark may write to the folder.
  refuse_while_busy
  keep_aborted "$folder"
  [[ $kind == single ]] || script=run_multiple_dbs_benchmark
  echo "=== $name"
  # Job control: without it, a background process would ignore Ctrl-C.
  set -m
  env "$@" RESULT_NAME="$name" bash "$ROOT/scripts/$script.bash" </dev/null &
  benchmark=$!
  set +m
  await_process "$benchmark" || status=$?
  benchmark=''
  if ((stop_status != 0)); then
    keep_aborted "$folder"
    exit "$stop_status"
  fi
  case $status in
    0) ;;
    2) exit 2 ;;
    130 | 143)
      keep_aborted "$folder"
      exit "$status"
      ;;
    *) rc=1 ;;
  esac
}

run 1-database-1000 single EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000
run 1-database-5000 single EVENTS_RATE=5000 EVENTS_TO_PUBLISH=300000
run 1-database-10000 single EVENTS_RATE=10000 EVENTS_TO_PUBLISH=600000
run 1-database-fastest single EVENTS_RATE=0 EVENTS_TO_PUBLISH=1000000
run 1-database-batches single EVENTS_RATE=0 EVENTS_BATCH_SIZE=100 CALLERS=4 EVENTS_TO_PUBLISH=3000000
run all-databases-1000 multiple EVENTS_RATE=1000 EVENTS_TO_PUBLISH=60000
run all-databases-5000 multiple EVENTS_RATE=5000 EVENTS_TO_PUBLISH=300000
run all-databases-10000 multiple EVENTS_RATE=10000 EVENTS_TO_PUBLISH=600000
run all-databases-fastest multiple EVENTS_RATE=0 EVENTS_TO_PUBLISH=1000000
run all-databases-batches multiple EVENTS_RATE=0 EVENTS_BATCH_SIZE=100 CALLERS=4 EVENTS_TO_PUBLISH=3000000
exit "$rc"
