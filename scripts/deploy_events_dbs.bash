#!/usr/bin/env bash
# Runs the databases on their machines. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$ROOT/scripts/lib/deploy.bash"

usage() {
  cat <<EOF
Usage: EVENTS_DB0_HOST=... [EVENTS_DB1_HOST=... ...] bash scripts/deploy_events_dbs.bash

Copies the packed database to each machine and replaces the running version; waits until it answers at each of
its addresses, and rolls back to the previous version if it does not. Data is kept in any case.

Environment:
  EVENTS_DB0_HOST ...   machines
  EVENTS_DB0_PRIVATE_HOST ...  their addresses in the private network, the only ones on which the databases' port is
                        open; '*': all [DB0_HOST ...; without it all]
  DB0_PASSWORD ...      passwords of the role eventsql; not needed with the file of passwords
  EVENTS_DB_MEMORY_MB   of each container [5120]
  EVENTS_DB_CPUS        of each container [2]
$DEPLOY_ENVIRONMENT

Examples:
  source infra.env && bash scripts/deploy_events_dbs.bash
  EVENTS_DB0_HOST=203.0.113.7 EVENTS_DB_CPUS=4 bash scripts/deploy_events_dbs.bash

Exit code: 0 all are healthy, 1 one is not, 2 wrong input.
EOF
}

no_arguments "$@"
read_passwords
hosts=$(require_variables EVENTS_DB _HOST)
mapfile -t hosts <<<"$hosts"
check_sizes EVENTS_DB
mapfile -t variables < <(set_variables EVENTS_DB_MEMORY_MB EVENTS_DB_CPUS)
addresses=()
for number in "${!hosts[@]}"; do
  require_variable "DB${number}_PASSWORD" >/dev/null
  address=$(private_address "EVENTS_DB${number}_PRIVATE_HOST" "DB${number}_HOST")
  # The health check needs the first one.
  [[ -z $address || $address == '*' ]] || address=127.0.0.1,$address
  addresses+=("$address")
done

rc=0
for number in "${!hosts[@]}"; do
  password=DB${number}_PASSWORD
  deploy events-db "${hosts[number]}" "LISTEN_ADDRESSES='${addresses[number]}'" "${variables[@]}" <<<"EVENTSQL_PASSWORD=${!password}" || rc=1
done
exit "$rc"
