#!/usr/bin/env bash
# Runs a file of Flink SQL on a standalone cluster of two TaskManagers on this machine. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/maven.bash

DEMO=eventsql/flink/src/test/sql/totals.sql
START_SECONDS_MAX=60

usage() {
  cat <<EOF
Usage: scripts/run_flink_query.bash [FILE.sql]

Starts a Flink cluster on this machine (a JobManager and two TaskManagers with two slots each, every one a process
of its own), runs the statements of the file with Flink's SQL client, and stops the cluster. Flink comes from
Maven Central; nothing is installed. Needs about 2 GB of memory, and ports of the loopback interface alone.

Without a file, it also starts a database with 10,000 orders, and runs $DEMO:
totals of each customer, written into a stream and read back.

FLINK_PORT, FLINK_PORT + 1 and FLINK_PORT + 2 are the ports of the web interface, the JobManager, and the
database [18081].

Examples:
  scripts/run_flink_query.bash
  scripts/run_flink_query.bash my_query.sql

Exit codes: 0 all statements ran; 1 one failed, or the cluster did not start; 2 wrong usage or no JDK.
EOF
}

case ${1:-} in
  --help | -h)
    usage
    exit 0
    ;;
  -*)
    usage >&2
    exit 2
    ;;
esac
if (($# > 1)); then
  usage >&2
  exit 2
fi
query=${1:-}
if [[ -n $query && ! -r $query ]]; then
  echo "cannot read $query" >&2
  exit 2
fi
port=${FLINK_PORT:-18081}

require_jdk
require_maven
folder=$(mktemp -d)
pids=()
stop() {
  exec 3>&- || true # the database stops when its input ends
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap stop EXIT

"${MAVEN[@]}" -q -Pquick,flink-cluster -pl eventsql/flink -am test-compile \
  org.apache.maven.plugins:maven-dependency-plugin:build-classpath -Dmdep.includeScope=test \
  "-Dmdep.outputFile=$folder/\${project.artifactId}.txt"
classpath=$ROOT/eventsql/flink/target/classes:$ROOT/eventsql/flink/target/test-classes:$(<"$folder/eventsql-flink.txt")

mkdir "$folder/conf"
cat >"$folder/conf/config.yaml" <<CONFIG
jobmanager.rpc.address: localhost
jobmanager.rpc.port: $((port + 1))
jobmanager.bind-host: localhost
taskmanager.host: localhost
taskmanager.bind-host: localhost
rest.address: localhost
rest.bind-address: localhost
rest.port: $port
execution.target: remote
execution.checkpointing.interval: 1s
execution.checkpointing.dir: file://$folder/checkpoints
io.tmp.dirs: $folder
# What the scripts of a distribution compute.
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 1
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 256m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.managed.size: 128m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 64m
taskmanager.memory.jvm-overhead.max: 64m
CONFIG

JVM=("$JAVA_HOME/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=info)
for package in util util.concurrent lang lang.reflect nio net text time; do
  JVM+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
JVM+=(--add-opens=java.base/sun.nio.ch=ALL-UNNAMED -cp "$classpath")

# Starts a process of the cluster, with its log in a file.
start() {
  local name=$1
  shift
  "${JVM[@]}" "$@" >"$folder/$name.log" 2>&1 &
  pids+=($!)
}

# Waits until a command succeeds; shows the logs and fails after a while.
await() {
  local what=$1
  shift
  for ((i = 0; i < START_SECONDS_MAX * 5; i++)); do
    if "$@"; then return; fi
    sleep 0.2
  done
  tail -n 20 "$folder"/*.log >&2
  echo "$what did not start within $START_SECONDS_MAX s" >&2
  exit 1
}

start jobmanager -Xmx512m org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir "$folder/conf"
for number in 1 2; do
  start "taskmanager-$number" -Xmx384m -XX:MaxDirectMemorySize=320m \
    org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir "$folder/conf" \
    -D "taskmanager.resource-id=taskmanager-$number"
done
if [[ -z $query ]]; then
  mkfifo "$folder/stdin"
  "${JVM[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn io.eventsql.flink.demo.DemoDatabase "$((port + 2))" \
    <"$folder/stdin" >"$folder/database.log" 2>&1 &
  pids+=($!)
  exec 3>"$folder/stdin"
  await 'the database' grep -q "^'url'" "$folder/database.log"
  options=$(grep "^'url'" "$folder/database.log")
  query=$folder/query.sql
  sed "s|{options}|$options|" "$DEMO" >"$query"
fi
has_slots() { curl -fs "http://localhost:$port/overview" | grep -q '"slots-total":4'; }
await 'the cluster' has_slots
echo "Cluster of 2 TaskManagers with 4 slots: http://localhost:$port"

FLINK_CONF_DIR=$folder/conf "${JVM[@]}" -Xmx512m -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
  org.apache.flink.table.client.SqlClient embedded -f "$query" 2>"$folder/client.log" | tee "$folder/client.out" ||
  {
    tail -n 20 "$folder/client.log" >&2
    exit 1
  }
# The client continues after an error.
if grep -qF '[ERROR]' "$folder/client.out"; then
  exit 1
fi
