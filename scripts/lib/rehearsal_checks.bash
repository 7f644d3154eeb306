# The steps and checks of a rehearsal once its machines are running. Sourced by rehearse_locally.bash, after rehearsal.bash.
# shellcheck shell=bash

# The contract's tests on a server in a container, as with an ordinary Docker, but with the image built here and
# without Ryuk, Testcontainers' own cleaner, whose image would have to be pulled.
rehearse_testcontainers() {
  local since started passed failed skipped
  source scripts/lib/maven.bash
  require_maven
  since=$(date +%s)
  TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_CHECKS_DISABLE=true TESTCONTAINERS_HOST_OVERRIDE=localhost \
    "${MAVEN[@]}" -q -B -ntp -Pquick -pl eventsql/core-it -am verify -Dtest=NONE -Dit.test=OneShardIT \
    -Dsurefire.failIfNoSpecifiedTests=false -Dfailsafe.failIfNoSpecifiedTests=false \
    -Deventsql.test.database=testcontainers -Deventsql.test.image=eventsql-rehearsal-postgres \
    >"$FOLDER/testcontainers.log" 2>&1 8>&- || { cat "$FOLDER/testcontainers.log" >&2; return 1; }
  started=$(docker events --since "$since" --until "$(date +%s)" --filter type=container --filter event=start \
    --filter image=eventsql-rehearsal-postgres --format '{{.ID}}' | wc -l)
  ((started > 0)) || { echo 'no test used a container' >&2; return 1; }
  read -r passed failed skipped < <(awk -f scripts/lib/test_totals.awk \
    eventsql/core-it/target/failsafe-reports/TEST-io.eventsql.contract.OneShardIT.xml)
  echo "$passed tests of OneShardIT passed, $failed failed, $skipped skipped, on $started server(s) in containers"
  ((passed > 0 && failed == 0))
}

# Kills each script at a random moment, with its local processes, and runs it again: the outcome must be the same as
# without the kill.
rehearse_kills() {
  local step component before after script
  before=$(stored_events)
  for step in events-db:deploy_events_dbs app:deploy_app runner:deploy_runners; do
    component=${step%:*}
    for _ in 1 2; do
      killed_then_again 12 env "APP=$component" "BASE_IMAGE=$(base_image "$component")" bash scripts/build_and_package.bash
      killed_then_again 15 bash "scripts/${step#*:}.bash"
    done
  done
  expect_deployed
  after=$(stored_events)
  [[ $before == "$after" && $before != 0 ]] || { echo "$before events were stored, now $after" >&2; return 1; }
  # Runners run in the middle of these seconds; preparing before and fetching afterwards take some, too.
  for script in run_multiple_dbs_benchmark run_single_db_benchmark; do
    for _ in 1 2; do
      killed_then_again 45 measure_once "$script" "$RESULTS/killed"
      [[ -s $ROOT/results/$last_measured/exit-code ]] || { echo 'the second benchmark left no result' >&2; return 1; }
      expect_no_runner
    done
  done
}

# Measures under the first name that has no result yet; the folder of a killed benchmark is renamed.
measure_once() {
  local script=$1 number=1
  while [[ -e $ROOT/results/$2-$number/result.json ]]; do
    number=$((number + 1))
  done
  last_measured=$2-$number
  RESULT_NAME=$last_measured bash "scripts/$script.bash"
}

# No machine has a running runner.
expect_no_runner() {
  local number found
  for number in 0 1 2 3; do
    found=$(on_machine "$number" docker ps --quiet --filter name=eventsql-runner)
    [[ -z $found ]] || { echo "a runner is still running on machine $number" >&2; return 1; }
  done
}

# Starts a command, kills it after up to $1 seconds, and runs it again to completion.
killed_then_again() {
  # A single RANDOM is below 32768.
  local ms=$(((RANDOM * 32768 + RANDOM) % ($1 * 1000))) process
  shift
  set -m
  "$@" 8>&- &
  process=$!
  set +m
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
  if kill -KILL -- "-$process" 2>/dev/null; then
    echo "--- killed after $ms ms: $*"
  else
    echo "--- had ended after $ms ms: $*"
  fi
  wait "$process" 2>/dev/null || true
  "$@"
}

on_machine() {
  local number=$1
  shift
  ssh -i "$FOLDER/key" -o BatchMode=yes -o "UserKnownHostsFile=\"$FOLDER/known_hosts\"" \
    "eventsql@$(address "$number")" "$@"
}

# How many events of the benchmarks the databases hold.
stored_events() {
  local number sum=0 stored
  for number in 0 1 2; do
    stored=$(on_machine "$number" docker exec --interactive eventsql-events-db psql --no-psqlrc --no-align --tuples-only \
      --username=postgres --dbname=eventsql <<<'SELECT coalesce(sum(head), 0) FROM (
        SELECT max(next_offset) AS head FROM eventsql.producer_batch GROUP BY stream_id, partition) AS heads')
    sum=$((sum + stored))
  done
  echo "$sum"
}

# Every machine runs the version packed last: healthy, and exactly once.
expect_deployed() {
  local number component name packed found
  for number in 0 1 2 3; do
    component=events-db
    ((number < 3)) || component=app
    name=eventsql-$component
    packed=$(packed_image "$component")
    found=$(on_machine "$number" docker inspect --format "'{{.Config.Image}} {{.State.Health.Status}}'" "$name")
    [[ $found == "$packed healthy" ]] || { echo "machine $number has $found instead of $packed" >&2; return 1; }
  done
  packed=$(packed_image runner)
  for number in 0 1 2; do
    found=$(on_machine "$number" docker image inspect --format "'{{.Id}}'" eventsql-runner:current "$packed" | uniq | wc -l)
    ((found == 1)) || { echo "machine $number has another runner than $packed" >&2; return 1; }
  done
  echo "all machines have the version packed last"
}

# The name of the image in the folder dist of a component.
packed_image() {
  tar --extract --gzip --to-stdout --file="$1/dist/image.tar.gz" manifest.json |
    sed -n 's/.*"RepoTags":\["\([^"]*\)".*/\1/p'
}

# Deploys an app that cannot start, and checks that the previous one runs again.
expect_roll_back() {
  local before after
  before=$(app_image)
  if JAVA_OPTS=-Xmx1k bash scripts/deploy_app.bash; then
    echo 'a broken app was deployed' >&2
    return 1
  fi
  after=$(app_image)
  [[ $before == "$after" ]] || { echo "before $before, now $after" >&2; return 1; }
}

# Id and health of the container on the app's machine.
app_image() {
  on_machine 3 docker inspect --format "'{{.Id}} {{.State.Health.Status}}'" eventsql-app
}
