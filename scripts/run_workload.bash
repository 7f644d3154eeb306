#!/usr/bin/env bash
# Measures workloads on this machine, from the sources to plots in results/. `--help` tells more.
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
# Whoever stops this process, stops the benchmark itself.
exec "$PYTHON" "$ROOT/scripts/workload.py" "$@"
