#!/usr/bin/env bash
# Runs single Java tests, in the module they are in. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/maven.bash

usage() {
  cat <<'EOF'
Usage: scripts/run_test.bash CLASS[#METHOD][,CLASS…] [maven arguments]

Builds the module of the first class and what it depends on (no formatter, no static analysis), then runs the tests.
ClassIT is an integration test, any other class a unit test. METHOD may contain *, and may be one of a nested class.

Examples:
  scripts/run_test.bash SettingsTest
  scripts/run_test.bash 'OneShardIT#publish_event*'
  scripts/run_test.bash MembershipIT,FrozenMemberIT -Deventsql.test.database=testcontainers

Exit code: 0 all good, 1 something failed or no test was found, 2 wrong usage or no JDK.
EOF
}

case ${1:-} in
  --help | -h)
    usage
    exit 0
    ;;
  '' | -*)
    usage >&2
    exit 2
    ;;
esac
tests=$1
shift

class=${tests%%[#,]*}
modules=$(find . -name target -prune -o -path "*/src/test/java/*/$class.java" -print |
  sed 's:/src/test/java/.*::' | sort -u | paste -sd, -)
if [[ -z $modules ]]; then
  echo "no test class $class in any src/test/java" >&2
  exit 2
fi
# Methods of nested classes, too: these are called Class$Nested.
pattern=${tests//#/*#}
arguments=(-q -Pquick -pl "$modules" -am)
if [[ $class == *IT ]]; then
  arguments+=(verify "-Dit.test=$pattern")
else
  arguments+=(test "-Dtest=$pattern")
fi

require_jdk
require_maven
started=$(mktemp)
trap 'rm -f "$started"' EXIT
exit_code=0
"${MAVEN[@]}" "${arguments[@]}" "$@" || exit_code=1
mapfile -t reports < <(find . -path '*/target/*' -name 'TEST-*.xml' -newer "$started")
if ((${#reports[@]} == 0)); then
  echo "no test of $modules was run: $tests" >&2
  exit 1
fi
read -r passed failed skipped < <(awk -f scripts/lib/test_totals.awk "${reports[@]}")
echo "$passed passed, $failed failed, $skipped skipped"
if ((exit_code != 0 && failed == 0)); then
  echo 'Maven failed: the tests did not run to their end' >&2
fi
exit "$exit_code"
