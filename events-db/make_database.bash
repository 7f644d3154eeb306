#!/usr/bin/env bash
# Creates the role and the database of a new server. Run by the image.
set -euo pipefail

: "${EVENTSQL_PASSWORD:?must be set: the password of the role eventsql}"
# Passes the password in the environment, because command lines are visible to other users.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres <<'EOF'
\getenv eventsql_password EVENTSQL_PASSWORD
\i /etc/eventsql/init.sql
EOF
