/**
 * Workload files: what is to be measured, as people write it, and the runs that come of it.
 */
@NullMarked
package io.eventsql.runner.spec;

import org.jspecify.annotations.NullMarked;
