#!/usr/bin/env bash
# Measures the bytes that the library allocates for an event, from the sources to results/. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case ${1:-} in
  --help | -h) ;;
  *) require_jdk ;;
esac
# exec, so that a signal to this process stops the benchmarks.
exec "$PYTHON" "$ROOT/scripts/microbenchmarks.py" "$@"
