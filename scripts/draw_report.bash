#!/usr/bin/env bash
# Draws pages and plots of results. See --help.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/python.bash"

make_venv
exec "$ROOT/.venv/bin/python" "$ROOT/scripts/draw_report.py" "$@"
