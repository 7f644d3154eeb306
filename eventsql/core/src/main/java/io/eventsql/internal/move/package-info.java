/**
 * Moves of keys between shards: shards join and leave. A new slot map is decided on one shard. All shards get to know of it, and of
 * the streams whose keys stay. Receivers are prepared with fresh partitions, then the givers close their slots, then the receivers
 * open, then all shards get the new map. Each step is one transaction on one shard, stored there, and can be repeated by any process.
 */
@NullMarked
package io.eventsql.internal.move;

import org.jspecify.annotations.NullMarked;
