# Finds a JDK for the build. Sourced by other scripts.
# shellcheck shell=bash

# shellcheck source=scripts/lib/bash_version.bash
source "${BASH_SOURCE[0]%/*}/bash_version.bash"

# The oldest Java that compiles and runs EventSQL.
JDK_MIN=21

# Prints the feature version (21, 25, ...) of the JDK in the folder $1, or 0 where there is none with a compiler.
jdk_version() {
  local home=$1 version
  [[ -x $home/bin/java && -x $home/bin/javac ]] || { echo 0; return; }
  # "release" answers without starting a JVM; some packages lack it.
  if [[ -r $home/release ]]; then
    version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release")
  else
    version=$("$home/bin/javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
  fi
  echo "${version:-0}"
}

# Prints the folders that may hold a JDK, one a line.
jdk_candidates() {
  local java
  [[ -z ${JAVA_HOME:-} ]] || echo "$JAVA_HOME"
  if java=$(command -v java) && java=$(readlink -f "$java" 2>/dev/null); then
    echo "${java%/bin/java}"
  fi
  printf '%s\n' /usr/lib/jvm/* "$HOME"/.sdkman/candidates/java/* /Library/Java/JavaVirtualMachines/*/Contents/Home
  if [[ -x /usr/libexec/java_home ]]; then
    /usr/libexec/java_home -v "$JDK_MIN+" 2>/dev/null || true
  fi
}

# Prints the folder of the newest JDK >= JDK_MIN; fails where there is none. Of equally new ones the first wins.
find_jdk() {
  local home version best='' best_version=0
  while IFS= read -r home; do
    version=$(jdk_version "$home")
    if ((version >= JDK_MIN && version > best_version)); then
      best=$home
      best_version=$version
    fi
  done < <(jdk_candidates)
  [[ -n $best ]] && echo "$best"
}

# Installs a JDK with apt-get, only as root and only one that apt offers.
install_jdk() {
  local package
  [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 1
  for package in openjdk-21-jdk-headless openjdk-25-jdk-headless temurin-21-jdk temurin-25-jdk; do
    if [[ -n $(apt-cache madison "$package" 2>/dev/null) ]]; then
      echo "No JDK >= $JDK_MIN here: installing $package" >&2
      DEBIAN_FRONTEND=noninteractive apt-get install -y "$package" >&2 && return 0
    fi
  done
  return 1
}

# Exports JAVA_HOME as the newest JDK >= 21 of this machine and puts it first in PATH. Exits with 2 where none is found.
require_jdk() {
  local home
  if ! home=$(find_jdk); then
    if ! { install_jdk && home=$(find_jdk); }; then
      cat >&2 <<EOF
EventSQL needs a JDK $JDK_MIN or newer (with javac), and none was found in JAVA_HOME, PATH,
/usr/lib/jvm, ~/.sdkman or /Library/Java. Install one, for instance
  Debian, Ubuntu:  apt-get install openjdk-21-jdk-headless
  Fedora:          dnf install java-21-openjdk-devel
  macOS:           brew install --cask temurin
  anywhere:        https://adoptium.net
or set JAVA_HOME to it.
EOF
      exit 2
    fi
  fi
  export JAVA_HOME=$home
  export PATH=$JAVA_HOME/bin:$PATH
}
