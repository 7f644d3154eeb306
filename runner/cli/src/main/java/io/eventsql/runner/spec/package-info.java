/** Workload files and the specifications of the runs that they define. */
@NullMarked
package io.eventsql.runner.spec;

import org.jspecify.annotations.NullMarked;
