#!/usr/bin/env bash
# Succeeds if the database answers at all its addresses: PostgreSQL also starts without those it cannot listen on. Used by
# the image.
set -euo pipefail

# Over TCP, which is disabled while the first start initializes the server.
query() {
  psql --no-psqlrc --no-password --no-align --tuples-only --host=127.0.0.1 --username="$1" --dbname="$1" --command="$2"
}

# pg_isready would also accept a server without the role and the database.
if ! query eventsql 'SELECT 1' >/dev/null; then
  databases=$(query postgres "SELECT count(*) FROM pg_database WHERE datname = 'eventsql'" 2>/dev/null) || exit 1
  [[ $databases != 0 ]] ||
    echo "The first start did not finish: there is no database eventsql. Remove the container and its volume," \
      "eventsql-events-db on a deployed machine, and start it again."
  exit 1
fi

IFS=, read -ra addresses <<<"${LISTEN_ADDRESSES:-*}"
for address in "${addresses[@]}"; do
  # Not psql, because only loopback connections require no password.
  [[ $address == '*' ]] || pg_isready --timeout=2 --host="$address" || exit 1
done
