/** Internals of the starter, which may change in any release. */
@NullMarked
package io.eventsql.spring.internal;

import org.jspecify.annotations.NullMarked;
