#!/usr/bin/env bash
# Measures EventSQL on this machine, from the sources to results/. `--help` tells the settings.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"

# Prints the first Python >= 3.11 in PATH.
find_python() {
  local python
  for python in python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

if ! python=$(find_python); then
  echo "Python 3.11 or newer is needed, and none was found in PATH (Debian: apt-get install python3)." >&2
  exit 2
fi
case ${1:-} in
  --help | -h) ;;
  *) require_jdk ;;
esac
# Whoever stops this process, stops the benchmark itself.
exec "$python" "$ROOT/scripts/local_benchmark.py" "$@"
