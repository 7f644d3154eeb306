# Creates machines and base images on this machine alone. Sourced by rehearse_locally.bash, which sets FOLDER.
# shellcheck shell=bash

NETWORK=10.213.77
BRIDGE=eventsql-r0
# Network of the Docker daemon that builds the images, for tests with servers in containers.
DOCKER_NETWORK=10.213.78
DOCKER_BRIDGE=eventsql-r1
MIRROR=http://deb.debian.org/debian
ROOT_PACKAGES=ca-certificates,openssh-server,docker.io,iproute2,procps,postgresql-client-15

machine_processes=()
docker_process=''

log_step() {
  echo
  echo "=== $1 (${SECONDS} s)"
}

address() {
  echo "$NETWORK.$(($1 + 10))"
}

install_programs() {
  local missing=() program package
  for program in dockerd:docker.io debootstrap:debootstrap sshd:openssh-server ip:iproute2 unshare:util-linux \
    unzip:unzip; do
    package=${program#*:}
    command -v "${program%:*}" >/dev/null || [[ -x /usr/sbin/${program%:*} ]] || missing+=("$package")
  done
  if ((${#missing[@]})); then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  # Debian's own client, which has the version of its server.
  export PATH=/usr/bin:/usr/sbin:$PATH
}

# A Debian with an ssh server, Docker and the user eventsql, as cloud-init configures a new machine.
make_root() {
  [[ -e $FOLDER/root.made ]] && return
  remove_root
  debootstrap --variant=minbase --include="$ROOT_PACKAGES" bookworm "$FOLDER/root" "$MIRROR" >"$FOLDER/debootstrap.log"
  chroot "$FOLDER/root" useradd --create-home --shell /bin/bash --groups docker eventsql
  # No password, but not locked: sshd refuses a locked account even with a key.
  chroot "$FOLDER/root" usermod --password '*' eventsql
  touch "$FOLDER/root.made"
}

# Folders of these names that are not of a rehearsal would be removed.
require_own_folder() {
  local mark=$FOLDER/.eventsql-rehearsal
  if [[ ! -e $mark && $FOLDER != "$ROOT/target/rehearsal" && -n $(ls -A "$FOLDER") ]]; then
    echo "REHEARSAL_FOLDER must be new, empty or of an earlier rehearsal, but $FOLDER has other files" >&2
    exit 2
  fi
  touch "$mark"
}

# A killed debootstrap leaves this machine's /proc mounted in the folder.
remove_root() {
  local mounted
  while read -r mounted; do
    [[ $mounted != "$FOLDER/root/"* ]] || umount --lazy "$mounted"
  done < <(findmnt --list --noheadings --output TARGET | sort --reverse)
  rm -rf --one-file-system "$FOLDER/root"
}

make_secrets() {
  local number
  rm -f "$FOLDER/key" "$FOLDER/key.pub" "$FOLDER/known_hosts" "$FOLDER/passwords"
  ssh-keygen -q -t ed25519 -N '' -C rehearsal -f "$FOLDER/key"
  (
    umask 077
    for number in 0 1 2; do
      echo "DB${number}_PASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
    done >"$FOLDER/passwords"
  )
}

# Records a process that would outlive this script if it is killed.
note_process() {
  echo "$1" >>"$FOLDER/processes"
}

# Stops the processes that a killed rehearsal has left in this folder; only those that name it, because ids are reused.
stop_leftovers() {
  local process command signal
  [[ -f $FOLDER/processes ]] || return 0
  while read -r process; do
    command=$(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline" || true)
    if [[ $command == *"$FOLDER/"* ]]; then
      signal=TERM
      # The process that waits for a machine's first process ignores other signals.
      [[ $command != *rehearsal_machine.bash* ]] || signal=KILL
      kill "-$signal" "$process" 2>/dev/null || true
      await "the end of process $process" 30 has_ended "$process"
    fi
  done <"$FOLDER/processes"
  rm -f "$FOLDER/processes"
}

has_ended() {
  [[ ! -e /proc/$1 ]] || grep -q '^State:.Z' "/proc/$1/status"
}

# A Docker daemon of this script, next to one that may run here.
start_docker() {
  export DOCKER_HOST=unix://$FOLDER/docker.sock DOCKER_BUILDKIT=0
  mkdir -p "$FOLDER/docker"
  rm -f "$FOLDER/docker.pid"
  ip link delete "$DOCKER_BRIDGE" 2>/dev/null || true
  ip link add "$DOCKER_BRIDGE" type bridge
  ip address add "$DOCKER_NETWORK.1/24" dev "$DOCKER_BRIDGE"
  ip link set "$DOCKER_BRIDGE" up
  dockerd --host "$DOCKER_HOST" --data-root "$FOLDER/docker/data" --exec-root "$FOLDER/docker/exec" \
    --pidfile "$FOLDER/docker.pid" --bridge "$DOCKER_BRIDGE" --iptables=false --ip-forward=false \
    >"$FOLDER/docker.log" 2>&1 8>&- &
  docker_process=$!
  note_process "$docker_process"
  await "Docker, see $FOLDER/docker.log" 60 docker version
}

# The base of the image of the component $1.
base_image() {
  [[ $1 == events-db ]] && echo eventsql-rehearsal-postgres || echo eventsql-rehearsal-java
}

# await WHAT SECONDS COMMAND...: repeats the command until it succeeds.
await() {
  local what=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > deadline)); then
      echo "$what was not ready in time" >&2
      return 1
    fi
    sleep 0.3
  done
}

# The Debian of the machines without the packages that only machines need.
make_debian_base() {
  docker image inspect eventsql-rehearsal-debian >/dev/null 2>&1 && return
  tar --create --directory="$FOLDER/root" --exclude='./usr/bin/docker*' --exclude='./usr/bin/containerd*' \
    --exclude='./usr/sbin/dockerd' --exclude='./usr/sbin/runc' --exclude='./usr/bin/ctr' --exclude='./usr/share/doc/*' \
    --exclude='./usr/share/locale/*' --exclude='./usr/share/man/*' --exclude='./var/cache/apt/*' \
    --exclude='./var/lib/apt/lists/*' . | docker import - eventsql-rehearsal-debian >/dev/null
}

# The part of docker-entrypoint.sh of the public image that is used here.
postgres_entrypoint() {
  cat <<'EOF'
#!/bin/bash
# Replaces that of the public image: initializes a server, runs the scripts of docker-entrypoint-initdb.d, starts it.
set -euo pipefail
if [[ ! -s $PGDATA/PG_VERSION ]]; then
  : "${POSTGRES_PASSWORD:?must be set}"
  user=${POSTGRES_USER:-postgres}
  mkdir -p "$PGDATA"
  # Loopback connections need no password, as in the public image. The health check relies on it.
  initdb --pgdata="$PGDATA" --username="$user" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=trust \
    --pwfile=<(echo "$POSTGRES_PASSWORD")
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses=''" start
  [[ ${POSTGRES_DB:-postgres} == postgres ]] ||
    psql --username="$user" --dbname=postgres --command="CREATE DATABASE \"$POSTGRES_DB\""
  for script in /docker-entrypoint-initdb.d/*.sh; do
    [[ ! -e $script ]] || bash "$script"
  done
  pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
fi
exec "$@"
EOF
}

make_postgres_base() {
  local build=$FOLDER/postgres
  rm -rf "$build"
  mkdir -p "$build/usr/local/pgsql" "$build/docker-entrypoint-initdb.d" "$build/usr/local/bin"
  # The same server as in the tests, from the launcher's jar.
  [[ -f events-db/target/events-db.jar ]] || {
    source scripts/lib/maven.bash
    require_maven
    "${MAVEN[@]}" -q -B -ntp -DskipTests -Dspotless.check.skip=true -pl events-db -am package
  }
  unzip -q -p events-db/target/events-db.jar "postgres-linux-x86_64.txz" |
    tar --extract --xz --directory="$build/usr/local/pgsql"
  postgres_entrypoint >"$build/usr/local/bin/docker-entrypoint.sh"
  chmod 755 "$build/usr/local/bin/docker-entrypoint.sh"
  make_debian_base
  cat >"$build/Dockerfile" <<'EOF'
FROM eventsql-rehearsal-debian
RUN useradd --uid 999 --home-dir /var/lib/postgresql --create-home postgres && mkdir -p /var/run/postgresql && chown postgres:postgres /var/run/postgresql
COPY usr /usr
COPY docker-entrypoint-initdb.d /docker-entrypoint-initdb.d
ENV PATH=/usr/local/pgsql/bin:/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/18/docker LANG=C.UTF-8
# The server of the tests has its socket in /tmp, unlike the default of Debian's psql.
ENV PGHOST=/tmp
VOLUME /var/lib/postgresql
USER postgres
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
EOF
  docker build --quiet --network none --tag eventsql-rehearsal-postgres "$build" >/dev/null
}

make_java_base() {
  local build=$FOLDER/java
  make_debian_base
  rm -rf "$build"
  mkdir -p "$build"
  "$JAVA_HOME/bin/jlink" --add-modules java.se,jdk.unsupported,jdk.crypto.ec,jdk.management,jdk.zipfs,jdk.httpserver \
    --strip-debug --no-header-files --no-man-pages --output "$build/jre"
  cat >"$build/Dockerfile" <<'EOF'
FROM eventsql-rehearsal-debian
COPY jre /opt/java
ENV PATH=/opt/java/bin:/usr/bin:/bin JAVA_HOME=/opt/java
EOF
  docker build --quiet --tag eventsql-rehearsal-java "$build" >/dev/null
}

make_network() {
  ip link delete "$BRIDGE" 2>/dev/null || true
  ip link add "$BRIDGE" type bridge
  ip address add "$NETWORK.1/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  # With another Docker running, this machine forwards nothing else.
  if command -v iptables >/dev/null; then
    forget_network_rule
    iptables --insert FORWARD --in-interface "$BRIDGE" --out-interface "$BRIDGE" --jump ACCEPT
  fi
}

forget_network_rule() {
  while iptables --delete FORWARD --in-interface "$BRIDGE" --out-interface "$BRIDGE" --jump ACCEPT 2>/dev/null; do :; done
}

# Namespaces and all their processes end with the first process.
start_machine() {
  local number=$1 machine=$FOLDER/machine-$1 process
  rm -rf "$machine"
  mkdir -p "$machine"/{upper,work,root,docker}
  mkdir -p "$machine/upper/home/eventsql/.ssh"
  cp "$FOLDER/key.pub" "$machine/upper/home/eventsql/.ssh/authorized_keys"
  unshare --mount --pid --net --uts --ipc --fork --kill-child=SIGKILL \
    bash "$ROOT/scripts/lib/rehearsal_machine.bash" "$FOLDER/root" "$machine" "machine-$number" \
    >"$machine/log" 2>&1 8>&- &
  process=$!
  machine_processes+=("$process")
  note_process "$process"
  await "machine $number" 10 has_own_network "$process"
  ip link delete "esql$number" 2>/dev/null || true
  ip link add "esql$number" type veth peer name "esqlp$number"
  ip link set "esql$number" master "$BRIDGE" up
  ip link set "esqlp$number" netns "$process"
  nsenter --target "$process" --net sh -c "ip link set esqlp$number name eth0 && ip address add $(address "$number")/24 dev eth0 &&
    ip link set lo up && ip link set eth0 up"
}

has_own_network() {
  [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]
}

await_machine() {
  await "machine $1, see $FOLDER/machine-$1/log" 90 ssh -i "$FOLDER/key" -o BatchMode=yes -o ConnectTimeout=5 \
    -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=\"$FOLDER/known_hosts\"" \
    "eventsql@$(address "$1")" docker info
  echo "machine-$1: $(address "$1")"
}

stop_everything() {
  local process number
  trap '' INT TERM HUP
  for process in "${machine_processes[@]}"; do
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  for number in 0 1 2 3; do
    ip link delete "esql$number" 2>/dev/null || true
    rm -rf "$FOLDER/machine-$number"
  done
  ip link delete "$BRIDGE" 2>/dev/null || true
  if command -v iptables >/dev/null; then
    forget_network_rule
  fi
  if [[ -n $docker_process ]]; then
    kill "$docker_process" 2>/dev/null || true
    wait "$docker_process" 2>/dev/null || true
  fi
  ip link delete "$DOCKER_BRIDGE" 2>/dev/null || true
  rm -f "$FOLDER/processes"
  echo "=== everything stopped (${SECONDS} s)"
}
