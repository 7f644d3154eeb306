/** Workload files, the specifications of the runs that they define, and the settings of a runner. */
@NullMarked
package io.eventsql.runner.spec;

import org.jspecify.annotations.NullMarked;
