/**
 * Keeps the segments of each partition: the next ones ready ahead of the head.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.retain;

import org.jspecify.annotations.NullMarked;
