# Finds a Python for the scripts. Sourced by other scripts.
# shellcheck shell=bash

# Prints the first Python >= 3.11 in PATH; fails where there is none.
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

# Sets PYTHON. Exits with 2 where none is found.
require_python() {
  # shellcheck disable=SC2034  # used by whoever sources this
  if ! PYTHON=$(find_python); then
    echo "Python 3.11 or newer is needed, and none was found in PATH (Debian: apt-get install python3)." >&2
    exit 2
  fi
}
