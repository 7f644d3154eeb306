# Finds a Python for the scripts, and creates .venv with their requirements. Sourced by other scripts; ROOT is the
# repository's folder.
# shellcheck shell=bash

# shellcheck source=scripts/lib/bash_version.bash
source "${BASH_SOURCE[0]%/*}/bash_version.bash"

# Prints the first Python >= 3.11 in PATH; fails where there is none. Further arguments are modules it must have.
find_python() {
  local python module imports='import sys'
  for module in "$@"; do
    imports+=", $module"
  done
  for python in python3 python3.13 python3.12 python3.11; do
    if "$python" -c "$imports; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

# Sets PYTHON. Exits with 2 where none is found.
require_python() {
  # shellcheck disable=SC2034  # used by the sourcing script
  if ! PYTHON=$(find_python); then
    echo "Python 3.11 or newer is needed, and none was found in PATH (Debian: apt-get install python3)." >&2
    exit 2
  fi
}

# Computes the checksum of a file, or of standard input (-). Older versions of macOS have only shasum.
checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$@"
  else
    shasum -a 256 "$@"
  fi
}

# Returns whether the Python of the environment $1 finds the modules: not if Python was upgraded since.
has_modules() {
  "$1/bin/python" -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "${@:2}" 2>/dev/null
}

# Recreates .venv if the requirements have changed since. Prints the reason and fails if that does not work.
make_venv() {
  local python requirements=("$ROOT"/scripts/requirements*.txt) venv=$ROOT/.venv
  local stamp=$venv/requirements.sha256
  # Packages are compiled when they are first imported. In an environment that forbids to keep the result, as those of many
  # images do, each process would compile them anew, which takes seconds.
  unset PYTHONDONTWRITEBYTECODE
  if [[ -f $stamp ]] && cat "${requirements[@]}" | checksum - | cmp -s - "$stamp" &&
    has_modules "$venv" matplotlib pandas pytest; then
    return
  fi
  if ! python=$(find_python venv ensurepip); then
    echo 'Python >= 3.11 with venv is needed (Debian: apt-get install python3-venv)' >&2
    return 1
  fi
  rm -rf "$venv"
  "$python" -m venv "$venv" || return 1
  "$venv/bin/python" -m pip install --quiet --no-compile --require-hashes "${requirements[@]/#/--requirement=}" || return 1
  cat "${requirements[@]}" | checksum - >"$stamp"
}

# Creates .venv for the plots of a benchmark, which continues without them.
prepare_plots() {
  if ! make_venv; then
    echo "No plots: .venv could not be created, see above." >&2
  fi
}
