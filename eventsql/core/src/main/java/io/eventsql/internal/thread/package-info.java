/**
 * The library's own threads.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.thread;

import org.jspecify.annotations.NullMarked;
