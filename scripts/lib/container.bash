# Runs versions of a container on the machine this is copied to. Sourced by load_and_run.bash.
# shellcheck shell=bash

# One deployment at a time: the descriptor stays open until the script exits, however it exits. If the script that started
# another deployment was killed, that deployment continues here until it is done.
require_only_deployment() {
  exec 9>"$HOME/.$1.lock"
  flock --nonblock 9 && return
  echo "waiting for another deployment of $1..."
  flock --wait 300 9 || { echo "another deployment of $1 did not finish within 300 s" >&2; exit 1; }
}

# Loads the image next to this script and prints its name.
load_image() {
  docker load --quiet --input "$1" | sed -n 's/^Loaded image: //p'
}

container_exists() {
  [[ -n $(docker ps --all --quiet --filter "name=^$1\$") ]]
}

# Records in a file that the container $1 has become healthy, because labels cannot change after the start.
note_healthy() {
  docker inspect --format '{{.Id}}' "$1" >>"$HOME/.$1.healthy"
}

# Whether the container $1 is healthy or ever was: a version is proven even if its database is currently down.
is_proven() {
  local id
  is_healthy "$1" && return
  id=$(docker inspect --format '{{.Id}}' "$1") || return
  grep --quiet --line-regexp --fixed-strings "$id" "$HOME/.$1.healthy" 2>/dev/null
}

# Whether the container $1 runs and is healthy now.
is_healthy() {
  [[ $(docker inspect --format '{{.State.Running}} {{.State.Health.Status}}' "$1" 2>/dev/null) == 'true healthy' ]]
}

# Waits up to $2 seconds until the container $1 is healthy; returns early if it keeps restarting.
await_healthy() {
  local deadline=$((SECONDS + $2))
  until is_healthy "$1"; do
    if ((SECONDS > deadline)) || (($(docker inspect --format '{{.RestartCount}}' "$1") > 2)); then
      return 1
    fi
    sleep 0.5
  done
}

# A component has no capability of root and cannot gain rights. Each also limits its processes, memory and processors.
CONFINED=(--cap-drop ALL --security-opt no-new-privileges)
# What the container runs, if not the image's own command.
COMMAND=()

# Replaces the container $1 by one of the image $3 with the further arguments of `docker run`, waits up to $2
# seconds until it is healthy, and otherwise rolls back to the previous version and fails.
#
# The previous version is kept as <name>-previous, stopped. If interrupted at any point, the next deployment finds either
# a proven container under the name, or a previous one and one under the name that was never healthy, which it removes.
replace_container() {
  local name=$1 seconds=$2 image=$3
  local previous=$name-previous
  shift 3
  if container_exists "$name"; then
    if is_proven "$name" || ! container_exists "$previous"; then
      docker rm --force "$previous" >/dev/null 2>&1 || true
      docker stop --time 60 "$name" >/dev/null
      docker rename "$name" "$previous"
    else
      docker rm --force "$name" >/dev/null
    fi
  fi
  if docker run --detach --name "$name" --restart unless-stopped --network host \
    --log-opt max-size=20m --log-opt max-file=3 "${CONFINED[@]}" "$@" "$image" "${COMMAND[@]}" >/dev/null && await_healthy "$name" "$seconds"; then
    note_healthy "$name"
    echo "$name: healthy, $image"
    remove_old_images "$image"
    return
  fi
  echo "$name: $image did not become healthy; its last log lines:" >&2
  docker logs --tail 30 "$name" >&2 || true
  echo "$name: its last health checks printed:" >&2
  docker inspect --format '{{range .State.Health.Log}}{{.Output}}{{end}}' "$name" | tail -n 2 >&2 || true
  roll_back "$name" "$seconds"
  return 1
}

roll_back() {
  local name=$1 seconds=$2
  docker rm --force "$name" >/dev/null 2>&1 || true
  if ! container_exists "$name-previous"; then
    echo "$name: no previous version" >&2
    return
  fi
  docker rename "$name-previous" "$name"
  docker start "$name" >/dev/null
  if await_healthy "$name" "$seconds"; then
    note_healthy "$name"
    echo "$name: rolled back to $(docker inspect --format '{{.Config.Image}}' "$name")" >&2
  else
    echo "$name: the previous version is not healthy either" >&2
  fi
}

# Docker refuses to remove images in use, so the current and the previous version are kept.
remove_old_images() {
  local image
  docker image ls --format '{{.Repository}}:{{.Tag}}' "${1%:*}" | while read -r image; do
    [[ $image == "$1" ]] || docker image rm "$image" >/dev/null 2>&1 || true
  done
}

# Prints the smaller of $1, which may be a fraction, and the number of processors, because Docker refuses more.
at_most_processors() {
  awk -v wanted="$1" -v processors="$(nproc)" 'BEGIN { print (wanted + 0 < processors + 0 ? wanted : processors) }'
}
