#!/usr/bin/env bash
# Measures how close EventSQL comes to what PostgreSQL and slow handlers allow, from the sources to results/. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case ${1:-} in
  --help | -h) ;;
  *) require_jdk ;;
esac
# exec, so that a signal to this process reaches the benchmark itself.
exec "$PYTHON" "$ROOT/scripts/limits_benchmark.py" "$@"
