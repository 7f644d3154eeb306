#!/usr/bin/env bash
# Measures queries of Apache Flink over a stream, from the sources to results/. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case ${1:-} in
  --help | -h) ;;
  *) require_jdk ;;
esac
# exec, so that a signal to this process stops what was started.
exec "$PYTHON" "$ROOT/scripts/queries.py" "$@"
