#!/usr/bin/env bash
# Makes role and database, once, when the server is new. Run by the image.
set -euo pipefail

: "${EVENTSQL_PASSWORD:?must be set: the password of the role eventsql}"
# psql takes the password from the environment: on a command line others could read it.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'EOF'
\getenv eventsql_password EVENTSQL_PASSWORD
\i /etc/eventsql/init.sql
EOF
