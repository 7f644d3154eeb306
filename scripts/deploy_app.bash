#!/usr/bin/env bash
# Runs the consumer on its machine. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"

usage() {
  cat <<EOF
Usage: APP_HOST=... DB0_HOST=... [DB1_HOST=... ...] bash scripts/deploy_app.bash

Copies the packed app to its machine and replaces the running version; waits until it consumes, and rolls back
to the previous version if it does not.

Environment:
  APP_HOST        the machine
  DB0_HOST ...    the databases as the app reaches them
  DB0_PASSWORD .. passwords of the role eventsql; not needed with the file of passwords
  APP_PRIVATE_HOST  its address in the private network, the only one on which its port is open [all addresses]
  APP_MEMORY_MB   of the container [1536]
  APP_CPUS        of the container [2]
  PARTITIONS, PAGE_EVENTS  for the app, see scripts/run_local_benchmark.bash --help
  JAVA_OPTS       JVM options, instead of all of the image's
                  [-XX:MaxRAMPercentage=65 -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError]
$DEPLOY_ENVIRONMENT

Examples:
  source infra.env && bash scripts/deploy_app.bash
  APP_HOST=203.0.113.8 DB0_HOST=10.110.0.2 bash scripts/deploy_app.bash

Exit code: 0 it is healthy, 1 it is not, 2 wrong input.
EOF
}

no_arguments "$@"
read_passwords
host=$(require_variable APP_HOST)
settings=$(database_settings)
check_sizes APP
mapfile -t variables < <(set_variables APP_MEMORY_MB APP_CPUS)
address=$(private_address APP_PRIVATE_HOST)
deploy app "$host" "${variables[@]}" < <(
  echo "$settings"
  [[ -z $address ]] || echo "SERVER_ADDRESS=$address"
  set_variables PARTITIONS PAGE_EVENTS JAVA_OPTS
)
