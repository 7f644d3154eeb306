package io.eventsql.runner.limits;

import java.util.Set;

/** What was seen at the end of a short period, or took all of it. */
record ActivitySample(TimeSpans.Span period, Set<String> seen) {}
