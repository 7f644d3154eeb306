#!/usr/bin/env bash
# Measures workloads on this machine, from the sources to plots in results/. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/jdk.bash"
source "$ROOT/scripts/lib/python.bash"

require_python
case " $* " in
  *" --help "* | *" -h "*) ;;
  *)
    require_jdk
    prepare_plots
    ;;
esac
# exec, so that a signal to this process reaches the benchmark itself.
exec "$PYTHON" "$ROOT/scripts/workload.py" "$@"
