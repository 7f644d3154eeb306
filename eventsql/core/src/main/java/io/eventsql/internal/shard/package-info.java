/**
 * The shards of a cluster: their identities, the slot map, the mapping of keys to slots, and the registry of streams.
 *
 * <p>Not API: may change in any release.
 */
@NullMarked
package io.eventsql.internal.shard;

import org.jspecify.annotations.NullMarked;
