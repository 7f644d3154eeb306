#!/usr/bin/env bash
# Loads the image beside this script and runs it in place of the previous version. Copied to the machine.
# settings.env beside it holds EVENTSQL_PASSWORD; the data is in the volume eventsql-events-db and stays.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/container.bash
source container.bash

# A runner of 2 GB and 2 processors works beside it on a machine of 8 GB and 4.
MEMORY_MB=${EVENTS_DB_MEMORY_MB:-5120}
CPUS=$(at_most_processors "${EVENTS_DB_CPUS:-2}")

require_only_deployment eventsql-events-db
image=$(load_image image.tar.gz)
# The superuser's password is not needed by anybody: from inside the container no password is asked for.
POSTGRES_PASSWORD=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
export POSTGRES_PASSWORD
replace_container eventsql-events-db 120 "$image" \
  --memory "${MEMORY_MB}m" --memory-swap "${MEMORY_MB}m" --cpus "$CPUS" --shm-size 512m --stop-signal SIGINT \
  --stop-timeout 60 --env-file settings.env --env POSTGRES_PASSWORD \
  --volume eventsql-events-db:/var/lib/postgresql
docker exec --interactive eventsql-events-db psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres \
  --dbname=postgres --file=/etc/eventsql/set_password.sql
