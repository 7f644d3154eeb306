/** Continuous aggregates that are declared as beans. */
@NullMarked
package io.eventsql.spring.internal.aggregate;

import org.jspecify.annotations.NullMarked;
