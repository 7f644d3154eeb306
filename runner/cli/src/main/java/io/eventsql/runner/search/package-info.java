/** Search for the highest rate at which a latency stays below a limit. */
@NullMarked
package io.eventsql.runner.search;

import org.jspecify.annotations.NullMarked;
