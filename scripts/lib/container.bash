# Runs versions of a container on the machine this is copied to. Sourced by load_and_run.bash.
# shellcheck shell=bash

# One deployment at a time: the descriptor stays open until the script ends, however it ends. Where whoever began another
# one was killed, that one goes on here until it is done.
require_only_deployment() {
  exec 9>"$HOME/.$1.lock"
  flock --nonblock 9 && return
  echo "waiting for another deployment of $1 to end..."
  flock --wait 300 9 || { echo "another deployment of $1 does not end" >&2; exit 1; }
}

# Loads the image beside this script and prints its name.
load_image() {
  docker load --quiet --input "$1" | sed -n 's/^Loaded image: //p'
}

container_exists() {
  [[ -n $(docker ps --all --quiet --filter "name=^$1\$") ]]
}

# Notes that the container $1 has become healthy. In a file: what a container is labelled with is fixed when it begins.
note_healthy() {
  docker inspect --format '{{.Id}}' "$1" >>"$HOME/.$1.healthy"
}

# Whether the container $1 is healthy or ever was: one whose database is down at the moment is no worse for it.
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

# Waits up to $2 seconds until the container $1 is healthy; ends early when it restarts because it failed.
await_healthy() {
  local deadline=$((SECONDS + $2))
  until is_healthy "$1"; do
    if ((SECONDS > deadline)) || (($(docker inspect --format '{{.RestartCount}}' "$1") > 2)); then
      return 1
    fi
    sleep 0.5
  done
}

# Replaces the container $1 by one of the image $3 with the further arguments of `docker run`, waits up to $2
# seconds until it is healthy, and otherwise brings the previous version back and fails.
#
# The previous version stays as <name>-previous, stopped. Interrupted anywhere, the next deployment finds either
# the good one under its name, or a previous and one under its name that was never healthy, which it drops.
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
    --log-opt max-size=20m --log-opt max-file=3 "$@" "$image" >/dev/null && await_healthy "$name" "$seconds"; then
    note_healthy "$name"
    echo "$name: healthy, $image"
    remove_old_images "$image"
    return
  fi
  echo "$name: $image did not become healthy; its last lines:" >&2
  docker logs --tail 30 "$name" >&2 || true
  roll_back "$name" "$seconds"
  return 1
}

roll_back() {
  local name=$1 seconds=$2
  docker rm --force "$name" >/dev/null 2>&1 || true
  if ! container_exists "$name-previous"; then
    echo "$name: there is no previous version" >&2
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

# Images that a container still uses are refused, so the current and the previous version stay.
remove_old_images() {
  local image
  docker image ls --format '{{.Repository}}:{{.Tag}}' "${1%:*}" | while read -r image; do
    [[ $image == "$1" ]] || docker image rm "$image" >/dev/null 2>&1 || true
  done
}

# Prints $1, which may be a fraction, or the number of processors, whichever is smaller: Docker refuses more than there are.
at_most_processors() {
  awk -v wanted="$1" -v processors="$(nproc)" 'BEGIN { print (wanted + 0 < processors + 0 ? wanted : processors) }'
}
