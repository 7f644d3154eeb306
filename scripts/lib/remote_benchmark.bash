# Runs a benchmark on deployed machines. Sourced by other scripts, after deploy.bash.
# shellcheck shell=bash

RUNNER_VARIABLES=(EVENTS_RATE EVENTS_TO_PUBLISH EVENTS_BATCH_SIZE CALLERS PARTITIONS EVENT_BYTES KEYED KEYS ASYNC
  WARMUP_SECONDS CONSUME_TIMEOUT)

# shellcheck disable=SC2034  # for the usage of the sourcing script
BENCHMARK_ENVIRONMENT="  EVENTS_RATE        events/s of each runner; 0: as fast as possible [5000]
  EVENTS_TO_PUBLISH  events of each runner [100000]
  EVENTS_BATCH_SIZE, CALLERS, EVENT_BYTES, KEYED, KEYS, ASYNC, WARMUP_SECONDS, CONSUME_TIMEOUT, PARTITIONS
                     as for scripts/run_local_benchmark.bash
  APP_HOST           the app's machine
  APP_PRIVATE_HOST   its address as the runners reach it [APP_HOST]
  DB0_HOST ...       the databases as the runners reach them; DB0_PASSWORD ... or the file of passwords
  RESULT_NAME        folder in results/ [cloud-<UTC time>]
$DEPLOY_ENVIRONMENT"

# Contains the process id of the running benchmark.
BUSY=$ROOT/results/.benchmark-process

# Background processes of this script, and the exit status of a received signal; 0: none.
stats=()
watch=''
runners=()
runner_hosts=()
interrupted=0

# Starts one runner on each of the given machines, prints and keeps their output, and fetches all results into
# results/<name>/. Returns 0 if nothing was lost, duplicated or late. After Ctrl-C the runners stop in order, and what
# they measured until then is fetched.
# $1: the command that repeats the benchmark.
remote_benchmark() {
  local command=$1 run_id settings app name folder rc=0
  shift
  runner_hosts=("$@")
  read_passwords
  settings=$(database_settings)
  require_variable APP_HOST >/dev/null
  app=http://${APP_PRIVATE_HOST:-$APP_HOST}:8080
  run_id=$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
  name=${RESULT_NAME:-cloud-$(date -u +%Y-%m-%dT%H-%M-%SZ)}
  check_result_name RESULT_NAME "$name"
  folder=$ROOT/results/$name
  require_only_benchmark
  # Only the folder of an aborted benchmark is renamed, not one with a result, nor a folder of other folders.
  if [[ -e $folder && (-e $folder/result.json || ! -d $folder/logs) ]]; then
    echo "$folder already exists; choose another RESULT_NAME" >&2
    exit 2
  fi
  keep_aborted "$folder"
  mkdir -p "$folder/logs" "$folder/stats"
  trap 'stop_early 130' INT
  trap 'stop_early 143' TERM HUP
  echo "run $run_id, ${#runner_hosts[@]} runner(s), results in $folder"

  collect_stats "$folder"
  { remove_runners && prepare_runners "$settings" "$app" "$run_id"; } || rc=1
  if ((rc == 0 && interrupted == 0)); then
    start_runners "$folder"
    await_runners "$folder" || rc=1
  fi
  stop_stats

  # Without a runner, the machines have only results of the previous benchmark.
  ((${#runners[@]} == 0)) || fetch_results "$folder" || rc=1
  if compgen -G "$folder/runner-*.json" >/dev/null; then
    summarize_results "$folder" "$run_id" "$app" "$command" || rc=1
  fi
  hide_addresses "$folder"
  if compgen -G "$folder/runner-*.json" >/dev/null; then
    draw_plots "$folder"
    [[ ! -e $folder/result.json ]] || echo "Results: $folder/result.json"
  fi
  ((interrupted == 0)) || return "$interrupted"
  # Written last: without it, the benchmark was aborted.
  [[ ! -e $folder/result.json ]] || echo "$rc" >"$folder/exit-code"
  return "$rc"
}

# Exits with 2 if $2, the value of the variable $1, is no folder below results/.
check_result_name() {
  local part='[A-Za-z0-9][A-Za-z0-9._-]*'
  if [[ ! $2 =~ ^$part(/$part)*$ ]]; then
    echo "$1 must be a folder in results/, of letters, digits, dots and dashes, but is '$2'" >&2
    exit 2
  fi
}

# Renames the folder of an aborted benchmark, so that it is not mistaken for a result.
keep_aborted() {
  local number=1
  [[ -e $1 ]] || return 0
  while [[ -e $1-aborted-$number ]]; do
    number=$((number + 1))
  done
  mv "$1" "$1-aborted-$number"
}

# One benchmark at a time: two would disturb each other, and their runners have the same name.
require_only_benchmark() {
  mkdir -p "$ROOT/results"
  refuse_while_busy
  (set -o noclobber && echo $$ >"$BUSY") 2>/dev/null || { echo 'another benchmark has just started' >&2; exit 2; }
  trap 'rm -f "$BUSY"' EXIT
}

# Whether the process $1 runs; a zombie does not.
is_running() {
  local state
  kill -0 "$1" 2>/dev/null || return 1
  state=$(ps -o stat= -p "$1" 2>/dev/null) || return 0
  [[ $state != Z* ]]
}

# Exits with 2 while a benchmark runs, even one whose series was killed.
refuse_while_busy() {
  local other
  [[ -e $BUSY ]] || return 0
  other=$(<"$BUSY")
  # A killed process takes a moment to exit.
  for _ in {1..20}; do
    if [[ -n $other ]] && ! is_running "$other"; then
      rm -f "$BUSY"
      return
    fi
    sleep 0.1
  done
  echo "another benchmark is running (process $other); wait for its end, or remove $BUSY if it does not run" >&2
  exit 2
}

# Stops the runners in order; $1 is the exit status. Where a container has not started yet, that is tried 20 times, every
# 0.5 s; a machine that does not answer is ignored.
stop_early() {
  local number attempts status
  interrupted=$1
  trap '' TERM HUP
  trap 'abort' INT
  echo 'Interrupted; the runners write what they measured until now (press Ctrl-C again to skip this)...' >&2
  for number in "${!runners[@]}"; do
    attempts=0
    until remote "${runner_hosts[number]}" 'docker stop --time 40 eventsql-runner >/dev/null 2>&1' 2>/dev/null </dev/null; do
      status=$?
      attempts=$((attempts + 1))
      # 255: ssh itself has failed.
      if ((status == 255 || attempts == 20)) || ! is_running "${runners[number]}"; then
        break
      fi
      sleep 0.5
    done
  done
}

abort() {
  trap '' INT
  stop_stats
  ((${#runners[@]} == 0)) || kill "${runners[@]}" 2>/dev/null || true
  echo 'Interrupted again; removing the runners...' >&2
  remove_runners || true
  hide_addresses "$folder"
  exit "$interrupted"
}

collect_stats() {
  local folder=$1 host name SSH
  while read -r host; do
    name=$(machine_name "$host")
    # Not through a function, because the process to stop is ssh itself.
    ssh_to "$host"
    "${SSH[@]}" INTERVAL_SECONDS="${INTERVAL_SECONDS:-10}" bash -s <"$ROOT/scripts/collect_docker_stats.bash" \
      >"$folder/stats/$name.txt" 2>>"$folder/logs/stats.log" &
    stats+=("$!")
  done < <(benchmark_machines)
  # If this script is killed, they would keep running.
  (
    trap '' INT
    trap 'kill "$!" 2>/dev/null; wait; exit' TERM
    while is_running $$; do
      sleep 2 &
      wait "$!"
    done
    kill "${stats[@]}" 2>/dev/null || true
  ) &
  watch=$!
}

# Prints what the machine $1 is called in results, which are published: without its address.
machine_name() {
  local name number=0
  [[ $1 != "$APP_HOST" ]] || { echo app; return; }
  for name in EVENTS_DB RUNNER; do
    number=0
    while host_of "$name$number" >/dev/null; do
      if [[ $(host_of "$name$number") == "$1" ]]; then
        [[ $name == RUNNER ]] && echo "runner-$number" || echo "events-db-$number"
        return
      fi
      number=$((number + 1))
    done
  done
  echo runner
}

# Prints the value of $1_HOST; fails where it is empty.
host_of() {
  local name=$1_HOST
  [[ -n ${!name:-} ]] && echo "${!name}"
}

# Replaces the addresses of machines in results by their names, also in a file that was not fetched completely.
hide_addresses() {
  local folder=$1 file host text
  for file in "$folder"/*.txt "$folder"/*.json "$folder"/*.json.new "$folder"/logs/*; do
    [[ -f $file ]] || continue
    text=$(<"$file")
    while read -r host; do
      # Without dots and colons it is no address, and may be a part of a field's name.
      [[ $file != *.json* || $host == *[.:]* ]] || continue
      text=${text//"$host"/"$(machine_name "$host")"}
      # Longer ones first: an address may be the beginning of another one.
    done < <(benchmark_machines | awk '{ print length, $0 }' | sort -rn | cut -d ' ' -f 2-)
    [[ -z $text ]] || printf '%s\n' "$text" >"$file"
  done
}

stop_stats() {
  ((${#stats[@]} > 0)) || return 0
  kill "$watch" "${stats[@]}" 2>/dev/null || true
  wait "$watch" "${stats[@]}" 2>/dev/null || true
  stats=()
}

# Removes all runners. Those of a killed benchmark keep running, even on machines without a runner in this one.
remove_runners() {
  local host rc=0
  while read -r host; do
    if ! remote "$host" 'docker rm --force eventsql-runner >/dev/null 2>&1 || true' </dev/null; then
      echo "[$host] did not answer; a runner may still be running there" >&2
      rc=1
    fi
  done < <(benchmark_machines)
  return "$rc"
}

prepare_runners() {
  local settings=$1 app=$2 run_id=$3 number host
  for number in "${!runner_hosts[@]}"; do
    host=${runner_hosts[number]}
    {
      echo "$settings"
      set_variables "${RUNNER_VARIABLES[@]}"
      warmup_settings
      printf '%s\n' "APP_URLS=$app" "RUN_ID=$run_id" "RUNNER_NUMBER=$number" "RUNNERS=${#runner_hosts[@]}" \
        "RUNNER_RESULT=/results/runner-$number.json"
    } | write_settings runner "$host" || return
    remote "$host" 'rm -rf eventsql/results' </dev/null || return
  done
}

# As in a local run: WARMUP_SECONDS is exact; without it the JVMs warm up until they hardly compile.
warmup_settings() {
  if [[ -n ${WARMUP_SECONDS:-} ]]; then
    echo WARMUP_MAX_SECONDS=0
  else
    echo WARMUP_SECONDS=10
    [[ ${EVENTS_RATE:-5000} == 0 ]] && echo WARMUP_MAX_SECONDS=30 || echo WARMUP_MAX_SECONDS=60
  fi
}

# They wait for each other at a barrier in the app, and start at the same moment.
start_runners() {
  local folder=$1 number
  for number in "${!runner_hosts[@]}"; do
    ((interrupted == 0)) || break
    (
      # Ctrl-C in a terminal reaches all its processes; these exit after the runner.
      trap '' INT
      set -o pipefail
      remote "${runner_hosts[number]}" bash eventsql/runner/run_runner.bash publish 2>&1 </dev/null |
        tee "$folder/runner-$number.txt" | prefixed "runner-$number"
    ) &
    runners+=("$!")
  done
}

await_runners() {
  local folder=$1 number rc=0
  for number in "${!runners[@]}"; do
    if ! await_process "${runners[number]}"; then
      rc=1
      echo "runner-$number failed, see $folder/runner-$number.txt" >&2
    fi
  done
  return "$rc"
}

# Prints every machine of the benchmarks once, even one whose runner is not used in this one.
benchmark_machines() {
  {
    printf '%s\n' "$APP_HOST" "${runner_hosts[@]}"
    [[ -z ${EVENTS_DB0_HOST:-} ]] || require_variables EVENTS_DB _HOST
    [[ -z ${RUNNER0_HOST:-} ]] || require_variables RUNNER _HOST
  } | sort -u
}

# Fetches the results of the runners; fails if one has none.
fetch_results() {
  local folder=$1 number rc=0
  for number in "${!runner_hosts[@]}"; do
    if remote "${runner_hosts[number]}" cat "eventsql/results/runner-$number.json" \
      </dev/null >"$folder/runner-$number.json.new" 2>>"$folder/logs/fetch.log"; then
      mv "$folder/runner-$number.json"{.new,}
    else
      rm -f "$folder/runner-$number.json.new"
      echo "runner-$number left no result, see $folder/logs/fetch.log" >&2
      rc=1
    fi
  done
  remote "$APP_HOST" docker logs --tail 1000 eventsql-app </dev/null >"$folder/logs/app.log" 2>&1 ||
    echo "The app's log could not be fetched" >&2
  return "$rc"
}

# Prints the commits of which the images of the runner on the machine $1 and of the app were built.
measured_commit() {
  local label="'{{index .Config.Labels \"org.opencontainers.image.revision\"}}'" runner app
  runner=$(remote "$1" "docker image inspect --format $label eventsql-runner:current" </dev/null) || runner=
  app=$(remote "$APP_HOST" "docker inspect --format $label eventsql-app" </dev/null) || app=
  runner=${runner:-unknown} app=${app:-unknown}
  [[ $runner == "$app" ]] && echo "$runner" || echo "$runner (runner), $app (app)"
}

# The app is reachable only inside the network, so the first runner's machine merges the results.
summarize_results() {
  local folder=$1 run_id=$2 app=$3 command=$4 commit processors host=${runner_hosts[0]} quoted rc=0
  commit=$(measured_commit "$host")
  # Its container may use fewer than the machine has.
  processors=$(remote "$host" nproc </dev/null) || return
  # It needs the results of all runners.
  (cd "$folder" && archive runner-*.json) |
    remote "$host" tar --extract --no-same-owner --directory=eventsql/results || return
  printf -v quoted '%q ' summarize --run "$run_id" --app-url "$app" --runner-results /results --out /results/result.json \
    --command "$command" --git-commit "$commit" --cpus "$processors"
  remote "$host" "bash eventsql/runner/run_runner.bash $quoted" </dev/null || rc=1
  remote "$host" tar --create --directory=eventsql/results result.json report.txt series.csv resources.csv \
    publish.hlog end_to_end.hlog </dev/null |
    tar --extract --no-same-owner --no-same-permissions --directory="$folder" || rc=1
  return "$rc"
}

# Plots need .venv, which draw_report.bash creates where it is missing; the CSV of the containers does not.
draw_plots() {
  local folder=$1 python=python3
  bash "$ROOT/scripts/draw_report.bash" "$folder" || echo "Drawing report.html in $folder failed" >&2
  [[ ! -x $ROOT/.venv/bin/python ]] || python=$ROOT/.venv/bin/python
  "$python" "$ROOT/scripts/collect_docker_stats.py" --out "$folder/stats" "$folder"/stats/*.txt ||
    echo "The statistics of the containers could not be converted; they are in $folder/stats" >&2
}
