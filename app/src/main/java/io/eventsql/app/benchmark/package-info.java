/** Counts the events of benchmark runs as they are handled, and answers runners over HTTP. */
@NullMarked
package io.eventsql.app.benchmark;

import org.jspecify.annotations.NullMarked;
