/**
 * Erases the values of a key's events: first in the outboxes, so that none is on its way, then on each shard in its
 * stream, then the copies; at last in the files. The progress is stored in each database, one transaction after the other.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.erase;

import org.jspecify.annotations.NullMarked;
