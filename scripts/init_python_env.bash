#!/usr/bin/env bash
# Creates the Python environment of the cloud scripts. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/python.bash"
source "$ROOT/scripts/lib/arguments.bash"

usage() {
  cat <<'EOF'
Usage: bash scripts/init_python_env.bash

Creates the folder venv with the requirements of prepare_infra.py, show_infra.py and destroy_infra.py, in pinned
versions and with hashes (scripts/requirements-cloud.txt). Does nothing if they have not changed since.

Example:
  bash scripts/init_python_env.bash && source venv/bin/activate
EOF
}

no_arguments "$@"

cd "$ROOT"
pinned=scripts/requirements-cloud.txt
stamp=venv/requirements.sha256
if [[ -f $stamp ]] && checksum --check --status "$stamp" && has_modules venv pydo; then
  echo 'venv: nothing has changed'
  exit 0
fi
require_python
rm -rf venv
"$PYTHON" -m venv venv
venv/bin/python -m pip install --quiet --require-hashes --requirement="$pinned"
# Written last, so that an incomplete environment is created again.
checksum "$pinned" >"$stamp"
echo 'venv: ready (source venv/bin/activate)'
