# Prints each failed test of JUnit XML reports with the beginning of its message.
BEGIN { RS = "<" }

/^testcase / { test = value($0, "classname") "#" value($0, "name") }

/^(failure|error)[ >]/ {
  message = value($0, "message")
  gsub(/&#10;|\n/, " ", message)
  print "FAILED  " test ": " substr(message, 1, 300)
}

function value(record, name) {
  return match(record, "[ \n]" name "=\"[^\"]*\"") ? substr(record, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
}
