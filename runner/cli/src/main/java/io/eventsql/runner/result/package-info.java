/** The result of a workload's run: reading and writing of its folder. */
@NullMarked
package io.eventsql.runner.result;

import org.jspecify.annotations.NullMarked;
