#!/usr/bin/env bash
# Pins the Python packages of the scripts with their hashes. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/arguments.bash"

usage() {
  cat <<'EOF'
Usage: bash scripts/pin_requirements.bash

Writes scripts/requirements*.txt from scripts/requirements*.in: all packages, those that others need included, with the
hashes of their files for every platform. Needs uv (pip install uv). Edit the .in files to choose another version.

Example:
  bash scripts/pin_requirements.bash && git diff --stat scripts
EOF
}

no_arguments "$@"
command -v uv >/dev/null || { echo 'uv is needed (pip install uv)' >&2; exit 2; }

cd "$ROOT/scripts"
for input in requirements*.in; do
  output=${input%.in}.txt
  # The others are constraints, because .venv has all of them.
  mapfile -t constraints < <(printf -- '--constraint=%s\n' requirements*.in)
  pinned=$(uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
    "${constraints[@]}" "$input")
  printf '# With hashes, so that pip installs nothing else. Made of %s by\n#   bash scripts/pin_requirements.bash\n%s\n' \
    "$input" "$pinned" >"$output"
done
