/**
 * Compares the sizes of the connection pools with what this instance needs, before it starts what needs them.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.pool;

import org.jspecify.annotations.NullMarked;
