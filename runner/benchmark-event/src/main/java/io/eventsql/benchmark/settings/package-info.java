/** How the benchmark's programs are set in the environment: what runner and app read in the same way. */
@NullMarked
package io.eventsql.benchmark.settings;

import org.jspecify.annotations.NullMarked;
