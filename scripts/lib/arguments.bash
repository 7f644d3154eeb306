# For scripts without arguments. Sourced by other scripts, which have a function usage.
# shellcheck shell=bash

# shellcheck source=scripts/lib/bash_version.bash
source "${BASH_SOURCE[0]%/*}/bash_version.bash"

# Exits on --help with the text of usage, on any other argument with 2.
no_arguments() {
  case ${1:-} in
    '') ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      echo "unknown argument $1 (see --help)" >&2
      exit 2
      ;;
  esac
}
