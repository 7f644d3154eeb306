/** Sampling of the resource usage of processes and databases during a run. */
@NullMarked
package io.eventsql.runner.sample;

import org.jspecify.annotations.NullMarked;
