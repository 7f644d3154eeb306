# Ends a script that an old Bash runs. Sourced by other scripts.
# shellcheck shell=bash

# These scripts expand empty arrays under set -u, and use mapfile.
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  echo "bash 4.4 or newer is needed, but this is $BASH_VERSION (macOS: brew install bash)" >&2
  exit 2
fi
