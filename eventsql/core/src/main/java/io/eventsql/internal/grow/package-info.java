/**
 * Growth: more partitions for a stream. On each shard, the new partitions are added with their tables first, closed to consumers.
 * Then one transaction gives the stream another map, under the locks that every append takes first; it also stores what consumers
 * must have handled before they may handle the new partitions.
 */
@NullMarked
package io.eventsql.internal.grow;

import org.jspecify.annotations.NullMarked;
