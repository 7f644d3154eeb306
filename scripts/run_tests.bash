#!/usr/bin/env bash
# Builds everything and runs every check. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/maven.bash
source scripts/lib/python.bash

usage() {
  cat <<'EOF'
Usage: scripts/run_tests.bash [options] [-- maven arguments]

Builds everything and runs every check:
  maven       ./mvnw verify: format, Error Prone, NullAway, unit and integration tests
              (against real PostgreSQL servers, no Docker needed), dependency analysis
  python      pytest (pages in headless Chromium), ruff and mypy, in .venv
  language    scripts/check_language.py: no phrase of scripts/language/banned.txt outside allowed.txt
  shellcheck  over every Bash script

The others run one after the other next to maven, and are printed after it.

Options:
  --only STEP  run only this step; may be repeated
  --rerun      repeat an integration test that fails, once. It counts as passed if it passes then, and is listed as
               FLAKY with its failure: a defect to be fixed, of the test or of the code
  --quick      run everything but slow tests: of the integration tests one for each step of an event's way
               (scripts/lib/quick_tests.txt), of pytest those without servers, containers, browsers or plots.
               Under 4 minutes on 2 cores; only the run without it decides whether a change is good
  --help       show this text

Examples:
  scripts/run_tests.bash
  scripts/run_tests.bash --quick
  scripts/run_tests.bash --only shellcheck
  scripts/run_tests.bash --only maven -- -pl events-db -Dit.test=EmbeddedEventsDbIT

Exit code: 0 all good, 1 something failed, 2 wrong usage or no JDK.
EOF
}

OTHERS=(python language shellcheck)
STEPS=(maven "${OTHERS[@]}")
QUICK_TESTS=scripts/lib/quick_tests.txt
only=()
quick=false
rerun=()
maven_arguments=()
pytest_arguments=(--junit-xml=target/pytest/TEST-pytest.xml)

while (($#)); do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --only)
      if [[ ! " ${STEPS[*]} " == *" ${2:-?} "* ]]; then
        echo "--only needs one of: ${STEPS[*]}" >&2
        exit 2
      fi
      only+=("$2")
      shift 2
      ;;
    --rerun)
      rerun=(-Dtest.reruns=1)
      shift
      ;;
    --quick)
      quick=true
      shift
      ;;
    --)
      shift
      maven_arguments=("$@")
      break
      ;;
    *)
      echo "unknown option $1 (see --help)" >&2
      exit 2
      ;;
  esac
done

reports_since=$(mktemp)
results=$(mktemp)
maven_output=$(mktemp)
others_output=$(mktemp)
others_pid=''
test_folder=''
trap 'rm -f "$reports_since" "$results" "$maven_output" "$others_output"
  [[ -z $test_folder ]] || rm -rf "$test_folder"
  [[ -z $others_pid ]] || kill -- "-$others_pid" 2>/dev/null || true' EXIT

is_wanted() {
  ((${#only[@]} == 0)) || [[ " ${only[*]} " == *" $1 "* ]]
}

# Runs the step $1 and adds its outcome to the file results: 0 ok, 3 skipped with the reason in skip_reason, else failed.
skip_reason=''
step() {
  local name=$1 rc=0
  is_wanted "$name" || return 0
  echo "=== $name"
  case $name in
    maven) run_maven || rc=$? ;;
    python) run_python || rc=$? ;;
    language) run_language || rc=$? ;;
    shellcheck) run_shellcheck || rc=$? ;;
  esac
  case $rc in
    0) echo "ok      $name" >>"$results" ;;
    3) echo "SKIPPED $name: $skip_reason" | tee -a "$results" ;;
    *) echo "FAILED  $name (exit code $rc)" >>"$results" ;;
  esac
}

run_others() {
  local name
  for name in "${OTHERS[@]}"; do
    step "$name"
  done
}

# Starts the other steps next to maven, in a process group of their own, which can be killed as a whole.
start_others() {
  set -m
  run_others </dev/null >"$others_output" 2>&1 &
  others_pid=$!
  set +m
}

finish_others() {
  local rc=0
  wait "$others_pid" || rc=$?
  others_pid=''
  cat "$others_output"
  if ((rc != 0)); then
    echo "FAILED  the steps next to maven ended early (exit code $rc)" >>"$results"
  fi
}

# Test servers create hundreds of databases with hundreds of files each, and half of the time goes to the file system. With
# enough memory, their data is kept there. Their settings stay durable, because tests kill only processes.
MEMORY=/dev/shm
MEMORY_FREE_MB=12288 # a few GB for the data, the rest for the processes
make_test_folder() {
  local free available
  free=$(df --output=avail --block-size=1M "$MEMORY" 2>/dev/null | tail -n 1)
  available=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo 2>/dev/null)
  if ((${free:-0} >= MEMORY_FREE_MB && ${available:-0} >= MEMORY_FREE_MB)); then
    test_folder=$(mktemp -d "$MEMORY/eventsql-tests.XXXXXX")
    maven_arguments+=("-Dtest.folder=$test_folder")
    echo "Data of the test servers is in memory, $test_folder"
  fi
}

# The entries of QUICK_TESTS, one a line.
quick_tests() {
  grep --invert-match --extended-regexp '^(#|$)' "$QUICK_TESTS"
}

# A quick run without unit tests, or an entry of QUICK_TESTS that matches no test, is an error.
check_tests_ran() {
  local class missing=0
  if [[ -z $(find . -path '*/surefire-reports/TEST-*.xml' -newer "$reports_since" -print -quit) ]]; then
    echo 'no unit test ran' >&2
    missing=1
  fi
  while read -r class; do
    if [[ -z $(find . -path "*/failsafe-reports/TEST-*.$class.xml" -newer "$reports_since" \
      -exec grep --files-with-matches '<testcase' {} +) ]]; then
      echo "$QUICK_TESTS: no test of $class ran" >&2
      missing=1
    fi
  done < <(quick_tests | sed 's/[$#].*//')
  return "$missing"
}

run_maven() {
  make_test_folder
  if $quick; then
    maven_arguments=(
      "-Dit.test=$(quick_tests | paste --serial --delimiters=,)"
      -Dfailsafe.failIfNoSpecifiedTests=false
      # As without -Dit.test, which would leave out unit tests, and run the others in one fork.
      -P '!chosen-integration-tests,all-integration-tests'
      "${maven_arguments[@]}"
    )
  fi
  # Four modules at a time, with one fork each, core-it with four, cli-it with two. A module's second fork would load and compile
  # its classes, start a server and create the tables once more. With many more forks, tests that limit the time of something
  # fail now and then on two processors. With fewer, the last modules run alone, and leave a processor idle.
  # Only the C1 compiler, because a build runs most of its code too few times for the other one to pay off. Nor does a
  # parallel collector, since tests use all processors.
  export MAVEN_OPTS=${MAVEN_OPTS:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}
  "${MAVEN[@]}" -B -ntp -T4 --fail-at-end verify "${rerun[@]}" "${maven_arguments[@]}" 2>&1 | tee "$maven_output" || return
  if $quick; then
    check_tests_ran
  fi
}

# Installs the Debian package $1 unless the program $2 (default: of its name) exists. Sets skip_reason where it cannot.
install_program() {
  local program=${2:-$1}
  if command -v "$program" >/dev/null || [[ -x /usr/sbin/$program ]]; then
    return
  fi
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    skip_reason="not installed (Debian: apt-get install $1)"
    return 3
  fi
  if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null 2>&1; then
    apt-get update -qq >/dev/null 2>&1 || true
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null; then
      skip_reason='not installed, and apt-get could not install it'
      return 3
    fi
  fi
}

run_python() {
  local rc=0
  if $quick; then
    pytest_arguments+=(-m 'not slow')
  elif ! { install_program chromium && install_program chromium-driver chromedriver; }; then
    echo "chromium is $skip_reason: the tests that open pages in a browser are skipped"
  fi
  make_venv || return 1
  .venv/bin/python -m pytest "${pytest_arguments[@]}" || rc=1
  .venv/bin/ruff check scripts || rc=1
  .venv/bin/ruff format --check scripts || rc=1
  .venv/bin/mypy --strict scripts || rc=1
  return $rc
}

run_language() {
  local python
  if ! python=$(find_python); then
    skip_reason='Python >= 3.11 is needed (Debian: apt-get install python3)'
    return 3
  fi
  "$python" scripts/check_language.py
}

run_shellcheck() {
  local scripts
  install_program shellcheck || return
  mapfile -t scripts < <(
    find . \( -name .git -o -name target -o -name .venv -o -name node_modules \) -prune -o -name '*.bash' -print | sort
  )
  shellcheck --external-sources --source-path="$ROOT" .ci/run "${scripts[@]}"
}

# Only reports of this run, because those of earlier runs or of removed tests may still exist.
print_totals() {
  local passed failed skipped reports
  mapfile -t reports < <(
    find . \( -name .git -o -name .venv -o -name node_modules \) -prune -o \
      -path '*/target/*' -name 'TEST-*.xml' -newer "$reports_since" -print
  )
  if ((${#reports[@]} == 0)); then
    echo 'no test reports'
    return
  fi
  read -r passed failed skipped < <(awk -f scripts/lib/test_totals.awk "${reports[@]}")
  awk -f scripts/lib/failed_tests.awk "${reports[@]}"
  echo "$passed passed, $failed failed, $skipped skipped"
}

if is_wanted maven; then
  require_jdk
  echo "JAVA_HOME=$JAVA_HOME"
  require_maven
fi
if is_wanted maven && ! $quick; then
  # Before the other steps start, because apt-get runs only once at a time.
  install_program pgbouncer || echo "pgbouncer is $skip_reason: its test is skipped"
fi
if is_wanted maven; then
  start_others
  step maven
  finish_others
else
  run_others
fi

echo
echo '=== summary'
cat "$results"
# Again, because the output of the other steps follows that of maven, and some logs are cut to their end.
grep '^\[ERROR\]' "$maven_output" | cut --characters=-300 | head -n 40 || true
print_totals
echo "elapsed: ${SECONDS} s"
if grep --quiet '^FAILED' "$results"; then
  exit 1
fi
