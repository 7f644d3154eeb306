/** Load generation: events, schedules and callers. Independent of the measurements. */
@NullMarked
package io.eventsql.runner.load;

import org.jspecify.annotations.NullMarked;
