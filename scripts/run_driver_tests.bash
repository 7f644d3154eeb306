#!/usr/bin/env bash
# Tests the drivers of other systems against real servers, which it starts. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case ${1:-} in
  --help | -h) ;;
  *) require_jdk ;;
esac
# exec, so that a signal to this process stops the servers.
exec "$PYTHON" "$ROOT/scripts/driver_tests.py" "$@"
