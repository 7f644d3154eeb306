# Prints each failed test of JUnit XML reports with the beginning of its message, and each that passed when repeated.
BEGIN { RS = "<" }

/^testcase / { test = value($0, "classname") "#" value($0, "name") }

/^(failure|error)[ >]/ { print "FAILED  " test ": " message() }

/^(flakyFailure|flakyError)[ >]/ { print "FLAKY   " test ": " message() }

function message(  text) {
  text = value($0, "message")
  gsub(/&#10;|\n/, " ", text)
  return substr(text, 1, 300)
}

function value(record, name) {
  return match(record, "[ \n]" name "=\"[^\"]*\"") ? substr(record, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
}
