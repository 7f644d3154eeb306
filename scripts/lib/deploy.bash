# Copies components to machines and runs them there. Sourced by other scripts; ROOT is the repository's folder.
# shellcheck shell=bash

source "$ROOT/scripts/lib/arguments.bash"

# Passwords, one DB0_PASSWORD=... a line, readable by their owner only; made by prepare_infra.py.
PASSWORDS=${PASSWORDS_FILE:-$ROOT/infra-passwords.env}
# Host keys as seen at the first contact.
KNOWN_HOSTS=${KNOWN_HOSTS_FILE:-$ROOT/infra-known-hosts}

# shellcheck disable=SC2034  # for the usage of whoever sources this
DEPLOY_ENVIRONMENT="  SSH_USER          user on the machines [eventsql]
  SSH_KEY_FILE      private key, where ssh does not find it by itself
  SSH_PORT          [22]
  PASSWORDS_FILE    [infra-passwords.env]
  KNOWN_HOSTS_FILE  host keys, kept at the first contact and required from then on [infra-known-hosts]"

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
    echo "$1 must be set (--help tells more)" >&2
    exit 2
  fi
  echo "${!1}"
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

# Prints what app and runner are told about the databases, one variable a line. Exits with 2 where a part is missing.
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

# Sets the array SSH to the command that reaches the machine $1. The file is quoted: ssh takes several, with blanks
# between them.
ssh_to() {
  SSH=(ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o StrictHostKeyChecking=accept-new
    -o "UserKnownHostsFile=\"$KNOWN_HOSTS\"" -o LogLevel=ERROR -p "${SSH_PORT:-22}")
  [[ -z ${SSH_KEY_FILE:-} ]] || SSH+=(-i "$SSH_KEY_FILE" -o IdentitiesOnly=yes)
  SSH+=("${SSH_USER:-eventsql}@$1")
}

# Runs a command on the machine $1.
remote() {
  local SSH
  ssh_to "$1"
  shift
  # shellcheck disable=SC2029  # the machine is to get what was expanded here
  "${SSH[@]}" "$@"
}

# Deploys the packed component $1 to the machine $2; settings come from standard input and are never on a command line.
# Further arguments are variables for load_and_run.bash, such as APP_CPUS=2.
deploy() {
  local component=$1 host=$2 settings
  shift 2
  settings=$(cat)
  if [[ ! -f $ROOT/$component/dist/image.tar.gz ]]; then
    echo "$component is not packed yet: APP=$component bash scripts/build_and_package.bash" >&2
    exit 2
  fi
  echo "[$host] copying $component..."
  # A whole folder, then its name: a copy that breaks off leaves the folder in use as it is. Under the lock of
  # load_and_run.bash, which reads what is there.
  tar --create --directory="$ROOT/$component/dist" . | remote "$host" "set -e
    exec 9>.eventsql-$component.lock; flock --wait 300 9
    mkdir -p eventsql; cd eventsql; rm -rf $component.new; mkdir $component.new
    tar --extract --directory=$component.new
    rm -rf $component; mv $component.new $component"
  write_settings "$component" "$host" <<<"$settings"
  remote "$host" env "$@" bash "eventsql/$component/load_and_run.bash" 2>&1 | prefixed "$host"
}

# Gives the component $1 on the machine $2 new settings, from standard input.
write_settings() {
  remote "$2" "umask 077; cat >eventsql/$1/settings.env"
}

# Waits for a process of this shell and returns its exit status. A signal that is trapped ends a wait, not the process.
await_process() {
  local status=0
  wait "$1" || status=$?
  while kill -0 "$1" 2>/dev/null; do
    status=0
    wait "$1" || status=$?
  done
  return "$status"
}

# Marks each line with where it comes from.
prefixed() {
  local line
  while IFS= read -r line; do
    printf '[%s] %s\n' "$1" "$line"
  done
}

# Prints the names of set variables out of a list as NAME=value, for `env`.
set_variables() {
  local name
  for name; do
    [[ -z ${!name:-} ]] || echo "$name=${!name}"
  done
}
