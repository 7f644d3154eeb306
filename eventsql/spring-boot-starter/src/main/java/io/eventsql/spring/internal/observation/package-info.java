/** Meters, and the spans of batches. */
@NullMarked
package io.eventsql.spring.internal.observation;

import org.jspecify.annotations.NullMarked;
