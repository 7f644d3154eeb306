#!/usr/bin/env bash
# Rehearses building, deploying and measuring on this machine alone. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/rehearsal.bash
source scripts/lib/rehearsal_checks.bash
source "$ROOT/scripts/lib/arguments.bash"

usage() {
  cat <<'EOF'
Usage: bash scripts/rehearse_locally.bash

Rehearses everything but renting machines: simulates four machines on this one (namespaces with a file system,
an address, an ssh server and a Docker of their own), builds the three images, deploys them over ssh, measures one
and three databases, collects the statistics, draws the report and removes the machines.
No image is pulled: their bases are built from Debian packages, from the PostgreSQL of the embedded servers and from
the local JDK. The results say nothing about speed.

Needs Linux, root, and Debian's docker.io, debootstrap and openssh-server, which it installs where they are missing.

Environment:
  REHEARSAL_FOLDER  machines, bases and keys; large files are kept there for the next run [target/rehearsal]
  EVENTS_RATE       [1000]
  EVENTS_TO_PUBLISH [20000]
  RESULT_NAME       folder in results/ [rehearsal-<UTC time>]
  REHEARSE          additional steps, separated by spaces: `kills` kills each script at random moments and runs it
                    again, `series` runs the whole series of benchmarks (takes a quarter of an hour),
                    `testcontainers` runs tests of the library on a server in a container []
  SEED              seed of the random moments [random, printed]

Examples:
  bash scripts/rehearse_locally.bash
  REHEARSE="kills series testcontainers" bash scripts/rehearse_locally.bash

Exit code: 0 all steps passed, 1 a step failed, 2 wrong input, 130 after Ctrl-C. Nothing is left running.
EOF
}

no_arguments "$@"
if [[ $(id -u) != 0 || $(uname) != Linux ]]; then
  echo 'a rehearsal needs root and Linux, because it creates namespaces and file systems' >&2
  exit 2
fi

for extra in ${REHEARSE:-}; do
  [[ $extra == kills || $extra == series || $extra == testcontainers ]] ||
    { echo "REHEARSE must contain only kills, series and testcontainers, but has $extra" >&2; exit 2; }
done
FOLDER=$(realpath -m "${REHEARSAL_FOLDER:-target/rehearsal}")
RESULTS=${RESULT_NAME:-rehearsal-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
export EVENTS_RATE=${EVENTS_RATE:-1000} EVENTS_TO_PUBLISH=${EVENTS_TO_PUBLISH:-20000} WARMUP_SECONDS=3
export INTERVAL_SECONDS=5

mkdir -p "$FOLDER"
require_own_folder
exec 8>"$FOLDER/lock"
flock --nonblock 8 || { echo "another rehearsal is running in $FOLDER" >&2; exit 2; }
trap stop_everything EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

require_jdk
stop_leftovers
log_step 'programs'
install_programs
log_step 'file system of the machines'
make_root
log_step 'ssh key and passwords'
make_secrets
log_step 'Docker to build with'
start_docker
log_step 'bases of the images'
make_postgres_base
make_java_base
log_step 'images'
for app in events-db app runner; do
  # The builds must not inherit the descriptor of the lock.
  APP=$app BASE_IMAGE=$(base_image "$app") bash scripts/build_and_package.bash 8>&-
done
if [[ " ${REHEARSE:-} " == *' testcontainers '* ]]; then
  log_step 'tests of the library on a server in a container'
  rehearse_testcontainers
fi
log_step 'machines'
make_network
for number in 0 1 2 3; do
  start_machine "$number"
done
for number in 0 1 2 3; do
  await_machine "$number"
done

export APP_HOST EVENTS_DB0_HOST EVENTS_DB1_HOST EVENTS_DB2_HOST DB0_HOST DB1_HOST DB2_HOST
APP_HOST=$(address 3)
EVENTS_DB0_HOST=$(address 0) EVENTS_DB1_HOST=$(address 1) EVENTS_DB2_HOST=$(address 2)
DB0_HOST=$(address 0) DB1_HOST=$(address 1) DB2_HOST=$(address 2)
export RUNNER_HOST=$EVENTS_DB0_HOST
export RUNNER0_HOST=$EVENTS_DB0_HOST RUNNER1_HOST=$EVENTS_DB1_HOST RUNNER2_HOST=$EVENTS_DB2_HOST
# Their ports are open on these addresses only.
export APP_PRIVATE_HOST=$APP_HOST EVENTS_DB0_PRIVATE_HOST=$EVENTS_DB0_HOST EVENTS_DB1_PRIVATE_HOST=$EVENTS_DB1_HOST
export EVENTS_DB2_PRIVATE_HOST=$EVENTS_DB2_HOST
# The machines share this one's memory and processors.
export EVENTS_DB_MEMORY_MB=2048 SSH_KEY_FILE=$FOLDER/key PASSWORDS_FILE=$FOLDER/passwords
export KNOWN_HOSTS_FILE=$FOLDER/known_hosts

log_step 'deploying'
bash scripts/deploy_events_dbs.bash
bash scripts/deploy_app.bash
bash scripts/deploy_runners.bash
log_step 'a second deployment replaces the first'
bash scripts/deploy_app.bash
log_step 'a version that does not start is rolled back'
expect_roll_back
log_step 'one database'
RESULT_NAME=$RESULTS/1-database bash scripts/run_single_db_benchmark.bash
log_step 'three databases'
RESULT_NAME=$RESULTS/3-databases bash scripts/run_multiple_dbs_benchmark.bash
if [[ " ${REHEARSE:-} " == *' kills '* ]]; then
  RANDOM=${SEED:=$RANDOM}
  log_step "killing scripts, seed $SEED"
  rehearse_kills
fi
if [[ " ${REHEARSE:-} " == *' series '* ]]; then
  log_step 'the whole series'
  SERIES_NAME=$RESULTS/series bash scripts/run_all_benchmarks.bash
fi
log_step 'tearing down'
