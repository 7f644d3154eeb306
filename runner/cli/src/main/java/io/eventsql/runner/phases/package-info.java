/** Phases of load on a driver's streams, with consumers in this process that check the deliveries. */
@NullMarked
package io.eventsql.runner.phases;

import org.jspecify.annotations.NullMarked;
