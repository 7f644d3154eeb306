/**
 * Compares the sizes of the connection pools with what this instance may need.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.pool;

import org.jspecify.annotations.NullMarked;
