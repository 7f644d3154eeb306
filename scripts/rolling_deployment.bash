#!/usr/bin/env bash
# Runs the previous version of the library next to this one on the same databases. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/maven.bash

# The first file of this release's schema: the commit before it is the previous release.
FIRST_FILE=eventsql/core/src/main/resources/io/eventsql/db/migration/shard/V8__segments.sql

usage() {
  cat <<'EOT'
Usage: scripts/rolling_deployment.bash [options] [maven arguments]

Builds the library of an earlier commit, and runs processes of it next to processes of this work tree: the earlier ones
create schema, events, consumers, parked events and an outbox backlog; one of this version migrates; both publish,
consume as members of the same consumer, relay and add segments while some are killed and replaced. At the end nothing
may be lost, stored twice or out of order, and everything must be handled. Needs the history of git.

Options:
  --previous COMMIT  the version to deploy from [the commit before schema version 8]
  --seconds N        how long both versions run [40]
  --seed N           repeats the choices of a run, but not their timing

Exit code: 0 all good, 1 something failed, 2 wrong usage, no JDK, or no such commit.
EOT
}

previous=
arguments=()
while (($# > 0)); do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --previous | --seconds | --seed)
      if (($# < 2)); then
        echo "$1 needs a value" >&2
        exit 2
      fi
      case $1 in
        --previous) previous=$2 ;;
        --seconds) arguments+=("-Deventsql.test.deploymentSeconds=$2") ;;
        --seed) arguments+=("-Deventsql.test.seed=$2") ;;
      esac
      shift 2
      ;;
    -*)
      arguments+=("$1")
      shift
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

if [[ -z $previous ]]; then
  first=$(git log --diff-filter=A --format=%H -- "$FIRST_FILE" | tail -n 1)
  previous=${first:+$first^}
fi
if [[ -z $previous ]] || ! commit=$(git rev-parse --verify --quiet "$previous^{commit}"); then
  echo "There is no commit ${previous:-before schema version 8} here. In a shallow clone: git fetch --unshallow" >&2
  exit 2
fi

require_jdk
require_maven
mkdir -p target
folder=$(mktemp -d "$ROOT/target/rolling-deployment-XXXXXX")
cleanup() {
  git worktree remove --force "$folder/tree" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

echo "Building the library of $(git log -1 --format='%h (%s)' "$commit")"
git worktree add --quiet --detach "$folder/tree" "$commit"
if ! "${MAVEN[@]}" -q -B -Pquick -DskipTests -f "$folder/tree/pom.xml" -pl eventsql/core -am "${arguments[@]}" package; then
  echo "the library of $commit cannot be built" >&2
  exit 1
fi
jar=$(find "$folder/tree/eventsql/core/target" -maxdepth 1 -name 'eventsql-*.jar' \
  ! -name '*-sources.jar' ! -name '*-javadoc.jar' ! -name '*-tests.jar')
if [[ ! -f $jar ]]; then
  echo "the build of $commit has left no single jar: ${jar:-none}" >&2
  exit 1
fi

echo "Running it next to $(git log -1 --format='%h (%s)')"
bash scripts/run_test.bash RollingDeploymentIT "-Deventsql.test.previousLibrary=$jar" "${arguments[@]}"
