/** Counts the handled events of benchmark runs and serves the counts over HTTP. */
@NullMarked
package io.eventsql.app.benchmark;

import org.jspecify.annotations.NullMarked;
