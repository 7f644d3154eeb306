# For scripts without arguments. Sourced by other scripts, which have a function usage.
# shellcheck shell=bash

# These scripts and what they source expand empty arrays under set -u, and use mapfile.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  echo "bash 4.4 or newer is needed, but this is $BASH_VERSION (macOS: brew install bash)" >&2
  exit 2
fi

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
