/**
 * Tells consumers that there is something to fetch, in this process and in others.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.wake;

import org.jspecify.annotations.NullMarked;
