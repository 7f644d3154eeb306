#!/usr/bin/env bash
# Succeeds if the app reports healthy. Used by the image, which may lack curl.
set -euo pipefail

exec 3<>"/dev/tcp/${SERVER_ADDRESS:-127.0.0.1}/${SERVER_PORT:-8080}"
printf 'GET /actuator/health HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
read -r _ status _ <&3
[[ $status == 200 ]]
