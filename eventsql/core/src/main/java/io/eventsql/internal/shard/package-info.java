/**
 * Which database holds what: shard identity, the slot map, routing of keys, the registry of streams.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.shard;

import org.jspecify.annotations.NullMarked;
