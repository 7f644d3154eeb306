/**
 * Microbenchmarks of the library: what an event costs the client. The bytes allocated for an event are exact also on a
 * machine that is busy; the times are not.
 */
@NullMarked
package io.eventsql.microbenchmarks;

import org.jspecify.annotations.NullMarked;
