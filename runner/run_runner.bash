#!/usr/bin/env bash
# Runs the runner on this machine with the given arguments. Its files are in ../results, which is kept across versions of
# the runner. Copied to the machine. settings.env in this folder contains all other settings: databases, apps, rates.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/container.bash
source container.bash

mkdir -p ../results
results=$(cd ../results && pwd)
# A container may remain from a killed caller.
docker rm --force eventsql-runner >/dev/null 2>&1 || true
exec docker run --rm --name eventsql-runner --network host --user "$(id -u):$(id -g)" \
  --pids-limit 4096 "${CONFINED[@]}" --memory 2g --memory-swap 2g --cpus "$(at_most_processors 2)" --env-file settings.env \
  --volume "$results:/results" eventsql-runner:current "$@"
