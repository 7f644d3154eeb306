#!/usr/bin/env bash
# Measures what it would gain to release an append's locks before its commit is durable. See --help.
set -euo pipefail

usage() {
    cat <<'EOF'
Usage: bash scripts/durable_commit_time.bash [--seconds SECONDS] [--rounds ROUNDS]

Measures three ways to commit a batch of ten events of 226 bytes under the lock of a partition's row, in
batches per second, with 1, 2, 4 and 8 clients. The clients share a partition, or each has its own.

  durable   one transaction with synchronous_commit = on: the rows are flushed, then shown, then unlocked
  later     the batch with synchronous_commit = off, which unlocks at once, then a tiny durable transaction,
            whose flush covers the batch; the rows are shown before they are durable
  never     the batch with synchronous_commit = off only, the upper limit of what could be gained

Needs psql and pgbench, and a PostgreSQL database that has nothing else to do; PGHOST, PGUSER, PGDATABASE
and so on choose it. Creates the schema durable_commit_time there and drops it at the end.

  --seconds SECONDS  duration of each measurement [3]
  --rounds ROUNDS    measurements of each way, in turns; the median is printed [3]

Example, about 4 minutes:
  PGHOST=localhost PGUSER=postgres PGDATABASE=postgres bash scripts/durable_commit_time.bash

Exit codes: 0 measured; 1 failed; 2 wrong usage.
EOF
}

seconds=3
rounds=3
while [[ $# -gt 0 ]]; do
    case $1 in
        --help | -h) usage && exit 0 ;;
        --seconds | --rounds)
            if [[ ! ${2:-} =~ ^[1-9][0-9]{0,2}$ ]]; then
                echo "$1 must be between 1 and 999, but is '${2:-}'" >&2
                exit 2
            fi
            if [[ $1 == --seconds ]]; then seconds=$2; else rounds=$2; fi
            shift 2
            ;;
        *)
            echo "unknown argument: $1; see --help" >&2
            exit 2
            ;;
    esac
done
for program in psql pgbench; do
    command -v "$program" >/dev/null || { echo "$program is missing; it comes with PostgreSQL's client programs" >&2; exit 1; }
done

FOLDER=$(mktemp -d)
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"; }
created=false
clean_up() {
    if $created; then
        sql 'DROP SCHEMA durable_commit_time CASCADE' 2>/dev/null || echo 'could not drop the schema durable_commit_time' >&2
    fi
    rm -r "$FOLDER"
}
trap clean_up EXIT

# Not that of another run, which is measuring.
if ! sql 'CREATE SCHEMA durable_commit_time'; then
    echo 'If no other run uses it: DROP SCHEMA durable_commit_time CASCADE' >&2
    exit 1
fi
created=true
sql 'CREATE TABLE durable_commit_time.head (partition int PRIMARY KEY, next_offset bigint NOT NULL) WITH (fillfactor = 20);
     CREATE TABLE durable_commit_time.event (partition int, event_offset bigint, value bytea, PRIMARY KEY (partition, event_offset));
     CREATE TABLE durable_commit_time.flush (client int PRIMARY KEY, number bigint NOT NULL) WITH (fillfactor = 20);
     INSERT INTO durable_commit_time.head SELECT p, 0 FROM generate_series(0, 7) p;
     INSERT INTO durable_commit_time.flush SELECT c, 0 FROM generate_series(0, 7) c;'

# The statements of one batch: $1 is "shared" or "own", $2 the way to commit.
script() {
    local partition=0 commit=on
    if [[ $1 == own ]]; then partition=:client_id; fi
    if [[ $2 != durable ]]; then commit=off; fi
    cat <<EOF
BEGIN;
SET LOCAL synchronous_commit = $commit;
UPDATE durable_commit_time.head SET next_offset = next_offset + 10 WHERE partition = $partition RETURNING next_offset AS next \\gset
INSERT INTO durable_commit_time.event SELECT $partition, :next - 10 + n, decode(repeat('ab', 226), 'hex') FROM generate_series(0, 9) n;
COMMIT;
EOF
    if [[ $2 == later ]]; then
        echo 'UPDATE durable_commit_time.flush SET number = number + 1 WHERE client = :client_id;'
    fi
}

sql "SELECT version()"
sql "SELECT 'fsync = ' || current_setting('fsync') || ', synchronous_commit = ' || current_setting('synchronous_commit')"
printf '%-10s %8s %10s %10s %10s   batches/s\n' partitions clients durable later never
for partitions in shared own; do
    for clients in 1 2 4 8; do
        for ((round = 0; round < rounds; round++)); do
            for way in durable later never; do
                script "$partitions" "$way" >"$FOLDER/script"
                pgbench -n -M prepared -c "$clients" -j "$clients" -T "$seconds" -f "$FOLDER/script" 2>"$FOLDER/errors" |
                    awk '/^tps = / {print $3}' >>"$FOLDER/$way" || { cat "$FOLDER/errors" >&2; exit 1; }
            done
        done
        printf '%-10s %8d' "$partitions" "$clients"
        for way in durable later never; do
            printf ' %10.0f' "$(sort -g "$FOLDER/$way" | awk '{all[NR] = $1} END {print all[int((NR + 1) / 2)]}')"
            rm "$FOLDER/$way"
        done
        echo
    done
done
