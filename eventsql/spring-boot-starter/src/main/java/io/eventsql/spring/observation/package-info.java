/** What is observed of events: meters, and traces that follow an event from its publisher to its handlers. */
@NullMarked
package io.eventsql.spring.observation;

import org.jspecify.annotations.NullMarked;
