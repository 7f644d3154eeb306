# Runs Maven. Sourced by other scripts; ROOT is the repository's folder.
# shellcheck shell=bash

# Sets the array MAVEN to the wrapper, or to the system's mvn where the wrapper cannot download Maven.
# Exits with 2 where neither works.
require_maven() {
  local output
  if output=$("$ROOT/mvnw" -v 2>&1); then
    MAVEN=("$ROOT/mvnw")
  elif command -v mvn >/dev/null; then
    echo "The Maven wrapper does not work here, using $(command -v mvn). Its output:" >&2
    echo "$output" >&2
    # shellcheck disable=SC2034  # used by the sourcing script
    MAVEN=(mvn)
  else
    echo "Neither ./mvnw nor an installed mvn works. Output of the wrapper:" >&2
    echo "$output" >&2
    exit 2
  fi
}
