# Copies components to machines and runs them there. Sourced by other scripts; ROOT is the repository's folder.
# shellcheck shell=bash

source "$ROOT/scripts/lib/arguments.bash"

# Passwords, one DB0_PASSWORD=... a line, readable by their owner only; written by prepare_infra.py.
PASSWORDS=${PASSWORDS_FILE:-$ROOT/infra-passwords.env}
# Host keys, accepted at the first contact.
KNOWN_HOSTS=${KNOWN_HOSTS_FILE:-$ROOT/infra-known-hosts}

# shellcheck disable=SC2034  # for the usage of the sourcing script
DEPLOY_ENVIRONMENT="  SSH_USER          user on the machines [eventsql]
  SSH_KEY_FILE      private key, where ssh does not find it on its own
  SSH_PORT          [22]
  PASSWORDS_FILE    [infra-passwords.env]
  KNOWN_HOSTS_FILE  host keys, accepted at the first contact and required afterwards [infra-known-hosts]"

# Reads DB0_PASSWORD and so on from the file of passwords, where the environment does not have them.
read_passwords() {
  local line name
  [[ -r $PASSWORDS ]] || return 0
  while IFS= read -r line; do
    name=${line%%=*}
    if [[ $name =~ ^DB[0-9]+_PASSWORD$ && -z ${!name:-} ]]; then
      printf -v "$name" '%s' "${line#*=}"
    fi
  done <"$PASSWORDS"
}

# Prints the value of the variable named $1; exits with 2 where it is empty.
require_variable() {
  if [[ -z ${!1:-} ]]; then
    echo "$1 must be set (see --help)" >&2
    exit 2
  fi
  echo "${!1}"
}

# Sets RUNNER0_HOST and so on to the machines of the databases, and RUNNER_HOST to the first one, where they are unset.
default_runner_hosts() {
  local number=0 runner database
  while true; do
    runner=RUNNER${number}_HOST database=EVENTS_DB${number}_HOST
    [[ -n ${!runner:-} || -n ${!database:-} ]] || break
    [[ -n ${!runner:-} ]] || printf -v "$runner" '%s' "${!database}"
    number=$((number + 1))
  done
  RUNNER_HOST=${RUNNER_HOST:-${RUNNER0_HOST:-}}
}

# Prints the address of the private network named by the variable $1 or, where that is unset, by one of the others. Without
# any it warns that the port of $1 is open on all addresses, and prints nothing. Exits with 2 on what is no address.
private_address() {
  local name
  for name; do
    [[ -n ${!name:-} ]] || continue
    if [[ ! ${!name} =~ ^([A-Za-z0-9.:_-]+|\*)$ ]]; then
      echo "$name must be an address, but is '${!name}'" >&2
      exit 2
    fi
    echo "${!name}"
    return
  done
  echo "Warning: $1 is not set, so the port is open on all addresses of the machine; restrict it with a firewall" >&2
}

# Prints the values of <prefix>0<suffix>, <prefix>1<suffix> and so on until one is empty; exits with 2 without any.
require_variables() {
  local prefix=$1 suffix=$2 number=0 name
  require_variable "${prefix}0${suffix}" >/dev/null
  name=${prefix}0${suffix}
  while [[ -n ${!name:-} ]]; do
    echo "${!name}"
    number=$((number + 1))
    name=$prefix$number$suffix
  done
}

# Exits with 2 if $1_MEMORY_MB or $1_CPUS has a value that Docker would refuse on the machine.
check_sizes() {
  local memory=$1_MEMORY_MB cpus=$1_CPUS
  if [[ -n ${!memory:-} && ! ${!memory} =~ ^[1-9][0-9]*$ ]]; then
    echo "$memory must be a whole number from 1, but is '${!memory}'" >&2
    exit 2
  fi
  if [[ -n ${!cpus:-} && ! ${!cpus} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    echo "$cpus must be a number such as 2 or 1.5, but is '${!cpus}'" >&2
    exit 2
  fi
}

# Prints the variables of the databases for app and runner, one per line. Exits with 2 if one is missing.
database_settings() {
  local hosts number=0 name value
  hosts=$(require_variables DB _HOST) || exit
  while read -r _; do
    for name in "DB${number}_HOST" "DB${number}_PASSWORD"; do
      value=$(require_variable "$name") || exit
      echo "$name=$value"
    done
    for name in "DB${number}_PORT" "DB${number}_NAME" "DB${number}_USER"; do
      [[ -z ${!name:-} ]] || echo "$name=${!name}"
    done
    number=$((number + 1))
  done <<<"$hosts"
}

# Sets the array SSH to the command that reaches the machine $1.
ssh_to() {
  # ssh splits this option at blanks, except between double quotes.
  # No shared connection: it would keep the groups of the first login.
  SSH=(ssh -o BatchMode=yes -o ControlMaster=no -o ControlPath=none -o ConnectTimeout=10 -o ServerAliveInterval=15
    -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=\"$KNOWN_HOSTS\"" -o LogLevel=ERROR -p "${SSH_PORT:-22}")
  [[ -z ${SSH_KEY_FILE:-} ]] || SSH+=(-i "$SSH_KEY_FILE" -o IdentitiesOnly=yes)
  SSH+=("${SSH_USER:-eventsql}@$1")
}

# Runs a command on the machine $1.
remote() {
  local SSH
  ssh_to "$1"
  shift
  # shellcheck disable=SC2029  # expanded here on purpose
  "${SSH[@]}" "$@"
}

# Deploys the packed component $1 to the machine $2; settings come from standard input and are never on a command line.
# Further arguments are variables for load_and_run.bash, such as APP_CPUS=2. Each step handles its own failure,
# because errexit is off where this is called before `||`.
deploy() {
  local component=$1 host=$2 settings
  shift 2
  settings=$(cat)
  if [[ ! -f $ROOT/$component/dist/image.tar.gz ]]; then
    echo "$component is not packed yet: APP=$component bash scripts/build_and_package.bash" >&2
    exit 2
  fi
  echo "[$host] copying $component..."
  # Copies to a new folder and then renames it, so that an interrupted copy does not change the folder in use. Under the
  # lock of load_and_run.bash, which reads the folder.
  archive --directory="$ROOT/$component/dist" . | remote "$host" "set -e
    exec 9>.eventsql-$component.lock; flock --wait 300 9
    mkdir -p eventsql; cd eventsql; rm -rf $component.new; mkdir $component.new
    tar --extract --no-same-owner --directory=$component.new
    rm -rf $component; mv $component.new $component" || failed_copy "$component" "$host" || return
  write_settings "$component" "$host" <<<"$settings" || failed_copy "$component" "$host" || return
  remote "$host" env "$@" bash "eventsql/$component/load_and_run.bash" 2>&1 | prefixed "$host"
}

# Writes an archive of files that belong to root to standard output. The tar of macOS names the options differently.
archive() {
  local owner=(--owner=0 --group=0)
  [[ $(tar --version 2>/dev/null) != *bsdtar* ]] || owner=(--uid 0 --gid 0 --uname '' --gname '')
  COPYFILE_DISABLE=1 tar --create --file=- "${owner[@]}" "$@" # no files of macOS's attributes
}

failed_copy() {
  echo "[$2] copying $1 failed, the running version stays; fix the cause above and deploy again" >&2
  return 1
}

# Replaces the settings of the component $1 on the machine $2 by standard input.
write_settings() {
  remote "$2" "umask 077; cat >eventsql/$1/settings.env"
}

# Waits for a process of this shell and returns its exit status. A trapped signal interrupts wait, not the process.
await_process() {
  local status=0
  wait "$1" || status=$?
  while kill -0 "$1" 2>/dev/null; do
    status=0
    wait "$1" || status=$?
  done
  return "$status"
}

# Prefixes each line with its origin.
prefixed() {
  local line
  while IFS= read -r line; do
    printf '[%s] %s\n' "$1" "$line"
  done
}

# Prints those of the named variables that are set as NAME=value, for `env`.
set_variables() {
  local name
  for name; do
    [[ -z ${!name:-} ]] || echo "$name=${!name}"
  done
}
