#!/usr/bin/env bash
# Records the resource usage of containers at intervals. See usage.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: bash scripts/collect_docker_stats.bash [FILE]

Every 10 seconds, appends the time in UTC and the output of `docker stats` to FILE (or standard output), until
it is interrupted. scripts/collect_docker_stats.py converts it to CSV and plots.

Environment:
  INTERVAL_SECONDS  [10]

Examples:
  bash scripts/collect_docker_stats.bash stats.txt
  ssh eventsql@203.0.113.7 bash -s < scripts/collect_docker_stats.bash > stats.txt
EOF
}

case ${1:-} in
  --help | -h)
    usage
    exit 0
    ;;
  '') ;;
  *) exec >>"$1" ;;
esac
interval=${INTERVAL_SECONDS:-10}
if [[ ! $interval =~ ^[1-9][0-9]*$ ]]; then
  echo "INTERVAL_SECONDS must be a whole number from 1, but is '$interval'" >&2
  exit 2
fi

trap 'exit 0' INT TERM
while true; do
  # The interval starts before docker stats, which takes seconds itself.
  sleep "$interval" &
  pause=$!
  # A single write, which fails when the reader has exited.
  stats=$(docker stats --no-stream --format \
    'table {{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t{{.BlockIO}}\t{{.PIDs}}' || true)
  printf '%s\n%s\n\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$stats" || exit 0
  wait "$pause"
done
