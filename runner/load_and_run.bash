#!/usr/bin/env bash
# Loads the image in this folder for run_runner.bash. Copied to the machine.
# The previous version remains as eventsql-runner:previous.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/container.bash
source container.bash

require_only_deployment eventsql-runner
image=$(load_image image.tar.gz)
# Replaces the current version only if the new one starts.
docker run --rm --network none "${CONFINED[@]}" "$image" --help >/dev/null
if [[ $(docker image inspect --format '{{.Id}}' eventsql-runner:current 2>/dev/null) \
  != $(docker image inspect --format '{{.Id}}' "$image") ]]; then
  docker tag eventsql-runner:current eventsql-runner:previous 2>/dev/null || true
  docker tag "$image" eventsql-runner:current
fi
echo "eventsql-runner: ready, $image"
