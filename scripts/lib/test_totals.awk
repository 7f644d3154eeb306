# Adds up JUnit XML reports: "<passed> <failed> <skipped>".
match($0, /<testsuite [^>]*/) {
  suite = substr($0, RSTART, RLENGTH)
  tests += count(suite, "tests")
  failed += count(suite, "failures") + count(suite, "errors")
  skipped += count(suite, "skipped")
}

function count(suite, name) {
  return match(suite, " " name "=\"[0-9]+\"") ? substr(suite, RSTART + length(name) + 3, RLENGTH - length(name) - 4) + 0 : 0
}

END { print tests - failed - skipped, failed + 0, skipped + 0 }
