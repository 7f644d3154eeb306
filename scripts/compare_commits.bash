#!/usr/bin/env bash
# Measures two commits in turns and prints the ratios of their rates. `--help` lists the options.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case " $* " in
  *' --help '* | *' -h '*) ;;
  *) require_jdk ;;
esac
exec "$PYTHON" "$ROOT/scripts/compare_commits.py" "$@"
