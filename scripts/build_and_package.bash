#!/usr/bin/env bash
# Packs one component as a Docker image with the script that runs it. See usage.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
source scripts/lib/jdk.bash
source scripts/lib/maven.bash
source "$ROOT/scripts/lib/arguments.bash"

usage() {
  cat <<'EOF'
Usage: APP=events-db|app|runner bash scripts/build_and_package.bash

Builds the component and its Docker image, and packs both into <component>/dist:
image.tar.gz and the scripts that load and run it on a machine.

Environment:
  APP         which component
  BASE_IMAGE  base of its image [that of <component>/Dockerfile, by digest: postgres:18 for events-db,
              eclipse-temurin:25-jre for the others]
  PLATFORM    platform of the image [linux/amd64]

Examples:
  APP=app bash scripts/build_and_package.bash
  for APP in events-db app runner; do APP=$APP bash scripts/build_and_package.bash; done

Exit code: 0 packed, 1 something failed, 2 wrong input.
EOF
}

no_arguments "$@"
case ${APP:-} in
  events-db) extra=() ;;
  app) extra=() ;;
  runner) extra=(runner/run_runner.bash) ;;
  *)
    echo "APP must be events-db, app or runner, but is '${APP:-}' (see --help)" >&2
    exit 2
    ;;
esac
command -v docker >/dev/null || { echo 'Docker is needed (Debian: apt-get install docker.io)' >&2; exit 2; }

# The database's image contains no Java.
if [[ $APP != events-db ]]; then
  require_jdk
  require_maven
  module=$APP
  [[ $APP != runner ]] || module=runner/cli
  "${MAVEN[@]}" -q -B -ntp -DskipTests -Dspotless.check.skip=true -pl "$module" -am package
fi

version=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)-$(date -u +%Y%m%dT%H%M%SZ)
image=eventsql-$APP:$version
arguments=()
[[ -z ${BASE_IMAGE:-} ]] || arguments+=(--build-arg "BASE_IMAGE=$BASE_IMAGE")
# Omitted where it is the default, because an old Docker without BuildKit refuses the option.
platform=${PLATFORM:-}
[[ -n $platform || $(uname -m) == x86_64 ]] || platform=linux/amd64
[[ -z $platform ]] || arguments+=(--platform "$platform")
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[[ -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=-dirty
docker build --quiet --label "org.opencontainers.image.revision=$commit" --tag "$image" "${arguments[@]}" "$APP" >/dev/null

# dist is replaced as a whole at the end, so that an incomplete one is never deployed.
rm -rf "$APP"/dist.[0-9]* # left by a killed run
unfinished=$APP/dist.$$
trap 'rm -rf "$unfinished"' EXIT
mkdir "$unfinished"
docker save "$image" | gzip -1 >"$unfinished/image.tar.gz"
cp scripts/lib/container.bash "$APP/load_and_run.bash" "${extra[@]}" "$unfinished/"
rm -rf "$APP/dist"
mv "$unfinished" "$APP/dist"
echo "$APP/dist: $image, $(du -sh "$APP/dist" | cut -f1)"
