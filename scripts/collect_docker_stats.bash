#!/usr/bin/env bash
# Records the resource usage of containers at intervals. See usage.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: bash scripts/collect_docker_stats.bash [FILE]

Every 10 seconds, appends the time in UTC and the output of `docker stats` to FILE (or standard output), until
it is interrupted. scripts/collect_docker_stats.py converts it to CSV and plots.
On the host's network Docker counts no traffic of containers. So a row `machine` follows, in the same columns, with
the machine's own counters: traffic of its network interfaces without loopback, and of its disks, since its start.

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
  -*)
    echo "unknown argument $1 (see --help)" >&2
    exit 2
    ;;
esac
if (($# > 1)); then
  echo "only one FILE can be written, but there are $# arguments (see --help)" >&2
  exit 2
fi
interval=${INTERVAL_SECONDS:-10}
if [[ ! $interval =~ ^[1-9][0-9]*$ ]]; then
  echo "INTERVAL_SECONDS must be a whole number from 1, but is '$interval'" >&2
  exit 2
fi

[[ -z ${1:-} ]] || exec >>"$1"

# For tests.
proc=${PROC_FOLDER:-/proc} sys=${SYS_FOLDER:-/sys}
busy=0 ticks=0

# Prints the row of the machine: CPU of all processors (100 % is one), memory in use, network, disks, processes.
machine_row() {
  local cpu used limit network blocks device disks='' processes
  cpu=$(cpu_since_last) || return 0
  # The machine's memory without what can be freed at once.
  read -r used limit < <(awk '/^MemTotal:/ { total = $2 } /^MemAvailable:/ { available = $2 }
    END { printf "%.0f %.0f\n", (total - available) * 1024, total * 1024 }' "$proc/meminfo")
  # Docker's own interfaces would count traffic twice.
  network=$(awk -F: 'NR > 2 { name = $1; gsub(/ /, "", name); split($2, field, " ") }
    NR > 2 && name !~ /^(lo|docker.*|br-.*|veth.*|virbr.*|tun.*)$/ { received += field[1]; sent += field[9] }
    END { printf "%.0fB / %.0fB", received, sent }' "$proc/net/dev")
  # Whole disks only: not partitions, nor devices on top of others.
  for device in "$sys"/block/*; do
    device=${device##*/}
    [[ $device =~ ^(loop|ram|zram|dm-|md|sr|fd|nbd) ]] || disks+=" $device "
  done
  blocks=$(awk -v disks="$disks" 'index(disks, " " $3 " ") { read += $6 * 512; written += $10 * 512 }
    END { printf "%.0fB / %.0fB", read, written }' "$proc/diskstats")
  processes=("$proc"/[0-9]*)
  awk -v cpu="$cpu" -v used="$used" -v limit="$limit" -v network="$network" -v blocks="$blocks" \
    -v processes="${#processes[@]}" 'BEGIN {
      printf "machine   %.2f%%   %.0fB / %.0fB   %.2f%%   %s   %s   %d\n", cpu, used, limit, 100 * used / limit,
        network, blocks, processes }'
}

# Prints the percentage since the counters in `busy` and `ticks`.
cpu_since_last() {
  local now_busy now_ticks
  read -r now_busy now_ticks < <(cpu_counters)
  awk -v busy=$((now_busy - busy)) -v ticks=$((now_ticks - ticks)) \
    -v processors="$(grep -c '^cpu[0-9]' "$proc/stat")" \
    'BEGIN { print (ticks <= 0 ? 0 : 100 * processors * busy / ticks) }'
}

# Prints busy and all ticks of all processors: user, nice, system, irq, softirq, steal; and idle, iowait.
cpu_counters() {
  awk '$1 == "cpu" { busy = $2 + $3 + $4 + $7 + $8 + $9; print busy, busy + $5 + $6 }' "$proc/stat"
}

read -r busy ticks < <(cpu_counters 2>/dev/null || echo 0 0)
trap 'exit 0' INT TERM
while true; do
  # The interval starts before docker stats, which takes seconds itself.
  sleep "$interval" &
  pause=$!
  # A single write, which fails when the reader has exited.
  stats=$(docker stats --no-stream --format \
    'table {{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t{{.BlockIO}}\t{{.PIDs}}' || true)
  row=$(machine_row 2>/dev/null || true)
  read -r busy ticks < <(cpu_counters 2>/dev/null || echo 0 0)
  printf '%s\n%s\n%s\n\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$stats" "$row" || exit 0
  wait "$pause"
done
