#!/usr/bin/env bash
# Loads the image in this folder and replaces the running version. Copied to the machine.
# settings.env in this folder contains EVENTSQL_PASSWORD. The data remains in the volume eventsql-events-db.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/container.bash
source container.bash

# Such as 127.0.0.1,10.0.0.2: other machines reach the port on these addresses only.
LISTEN_ADDRESSES=${LISTEN_ADDRESSES:-*}

# Leaves 2 GB and 2 processors for a runner on a machine with 8 GB and 4 processors.
MEMORY_MB=${EVENTS_DB_MEMORY_MB:-5120}
CPUS=$(at_most_processors "${EVENTS_DB_CPUS:-2}")

# Other machines do not reach a name that /etc/hosts maps to this machine itself, as Debian does with 127.0.1.1.
IFS=, read -ra addresses <<<"$LISTEN_ADDRESSES"
for address in "${addresses[@]}"; do
  case $address in
    '*' | 127.* | ::1 | localhost) continue ;;
  esac
  known=$(getent ahosts "$address") || known=''
  if [[ $known == 127.* || $known == ::1* ]]; then
    echo "eventsql-events-db: $address is ${known%% *} on this machine, which no other one reaches; use another address" >&2
    exit 1
  fi
done

require_only_deployment eventsql-events-db
image=$(load_image image.tar.gz)
# The superuser's password is never used, because connections inside the container require none.
POSTGRES_PASSWORD=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
export POSTGRES_PASSWORD
# shellcheck disable=SC2034  # replace_container reads it
COMMAND=(postgres -c config_file=/etc/eventsql/postgresql.conf -c "listen_addresses=$LISTEN_ADDRESSES")
replace_container eventsql-events-db 120 "$image" \
  --memory "${MEMORY_MB}m" --memory-swap "${MEMORY_MB}m" --cpus "$CPUS" --shm-size 512m --pids-limit 1024 --stop-signal SIGINT \
  --stop-timeout 60 --env-file settings.env --env POSTGRES_PASSWORD --env "LISTEN_ADDRESSES=$LISTEN_ADDRESSES" \
  --volume eventsql-events-db:/var/lib/postgresql
docker exec --interactive eventsql-events-db psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres \
  --dbname=postgres --file=/etc/eventsql/set_password.sql
