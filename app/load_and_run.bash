#!/usr/bin/env bash
# Loads the image in this folder and replaces the running version. Copied to the machine.
# settings.env in this folder contains DB0_HOST, DB0_PASSWORD and so on.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/container.bash
source container.bash

MEMORY_MB=${APP_MEMORY_MB:-1536}
CPUS=$(at_most_processors "${APP_CPUS:-2}")

require_only_deployment eventsql-app
image=$(load_image image.tar.gz)
replace_container eventsql-app 120 "$image" \
  --memory "${MEMORY_MB}m" --memory-swap "${MEMORY_MB}m" --cpus "$CPUS" --pids-limit 1024 --stop-timeout 30 \
  --env-file settings.env
